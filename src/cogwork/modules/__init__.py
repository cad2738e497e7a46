"""Modules: separate programs that provide models, and may call the machine.

1. `manager.py` compares the configured modules with the running ones. Each `Module`
   (`module.py`) has its own loop: start the process, do the handshake (`handshake.py`), probe
   its health (`health_probe.py`) and, after a failure, restart it with back-off. `bundle.py`
   unpacks archives.
2. A session (`session.py`) is the time from the handshake to the exit of the process. It offers
   the models of the module to the graph. Before a resource is planned, the module is asked for
   its dependencies (`validation_cache.py`).
3. The object in the graph is the SDK's client of the API on our own channel
   (`resource/sdk/clients.py`), so built-in resources use it like any other. Calls of clients
   bypass that object: `robot/middleware/resource_proxy.py` and `wire/clients/proxy.py` forward
   their bytes unparsed, within the same middleware.
4. Modules call the machine through `parent_server.py`: the same handler table, on one socket for
   each module, so that the peer of a call is `module:<name>`. `robot/middleware/access.py`
   limits a module to its dependencies if the configuration asks for it.

When a module crashes, `subprocesses/process.py` detects the exit. The loop in `module.py`
records how the module ended and its last output. The offers become `Unavailable` with that
reason, and the graph closes the resources, marks their dependents unhealthy with the root cause,
and rebuilds them when the module is back. A module that hangs is reported as unresponsive, but
not restarted.
"""
