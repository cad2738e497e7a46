"""Serves the handler table with grpc.aio, whose transport is written in C."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc
import grpc.aio
from grpclib.const import Cardinality

from cogwork.front.peer_name import parse_socket_name
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.wire.table.handlers import HandlerTable, Method, NotServed
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE
from cogwork.wire.transports.grpc_clients import GrpcClients, PeerOf
from cogwork.wire.transports.grpc_method import to_grpc_handler
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS, SERVER_OPTIONS, Keepalive
from cogwork.wire.transports.running_calls import RunningCalls


def grpc_server(
    table: HandlerTable,
    peer_of: PeerOf = parse_socket_name,
    proxies: TrustedProxies | None = None,
    running: RunningCalls | None = None,
    max_request_size: int = MAX_REQUEST_SIZE,
    keepalive: Keepalive | None = None,
) -> grpc.aio.Server:
    """Return a server that is neither started nor listening.

    `running` tracks the calls of the server. `max_request_size` is the limit of the method with the
    largest requests. `keepalive` replaces the usual pings.
    """
    clients = GrpcClients(
        table.requests,
        peer_of,
        proxies if proxies is not None else TrustedProxies(),
        running if running is not None else RunningCalls(),
    )
    options = dict(GRPC_OPTIONS + SERVER_OPTIONS)
    options["grpc.max_receive_message_length"] = max_request_size
    options.update(keepalive.options if keepalive is not None else ())
    handler = _GenericHandler(table, clients)
    return grpc.aio.server(handlers=(handler,), options=tuple(options.items()))


class _GenericHandler(grpc.GenericRpcHandler):
    def __init__(self, table: HandlerTable, clients: GrpcClients) -> None:
        self._table = table
        self._clients = clients
        self._grpc_handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any]:
        path = handler_call_details.method
        handler = self._grpc_handlers.get(path)
        if handler is None:
            method = self._find(path)
            handler = to_grpc_handler(method, self._clients)
            if not method.is_unregistered:
                self._grpc_handlers[path] = handler
        return handler

    def _find(self, path: str) -> Method:
        try:
            return self._table.find(path) or _failing_method(path, NotServed(path))
        except Exception as error:
            return _failing_method(path, error)


def _failing_method(path: str, error: Exception) -> Method:
    """Return a method that raises an error."""

    async def fail(_: object) -> NoReturn:
        raise error

    return Method(path, Cardinality.STREAM_STREAM, fail, is_unregistered=True)
