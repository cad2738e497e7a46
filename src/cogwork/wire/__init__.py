"""Calls: from a socket to the handler of a method, over every transport.

`table` has the handler table: every method that a server serves, with its limits and middleware,
for all transports. `transports` serves the table over gRPC, gRPC-web and WebRTC data channels.
`clients` makes calls to other servers. `messages` has the messages of Cogwork's own methods, and
reads parts of other messages without parsing them.

1. `transports/grpc.py` finds the method in the table (`table/handlers.py`).
   `transports/grpc_method.py` checks the size of the request (`table/request_limits.py`),
   counts the request against the memory budget that all transports share
   (`core/limits/byte_budget.py`) and passes a `Stream` to the handler, which parses the message
   when it is first used. gRPC-web (`transports/grpcweb.py`) and data channels
   (`transports/data_channel.py`) do the same.
2. If the first message names a resource in another process, the method's proxy route forwards
   the call as bytes (`Method.find_proxy`). A service is loaded at its first call:
   `graph/public_apis.py` names its class.
3. Middleware wraps every handler; `robot/handler_table.py` lists it in the order in which it
   runs.
4. The service calls `Machine.find`, which returns the object of a ready resource or raises an
   error with the reason. The call holds the object until the call ends.
5. `table/status.py` turns exceptions into gRPC statuses. Unexpected exceptions are logged with
   their traceback, and the client gets one sentence.
"""
