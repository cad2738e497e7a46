"""The handler table on grpc.aio, which moves the bytes in C."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
from grpclib.const import Cardinality
from grpclib.metadata import Deadline

from cogwork.wire.handlers import HandlerTable, Metadata, Method
from cogwork.wire.status import grpc_code, status_of

LARGEST_MESSAGE = 1 << 25

_Context = grpc.aio.ServicerContext[Any, Any]

OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    ("grpc.so_reuseport", 0),
    # Clients of this API ping every 20 s, also when they have no call under way.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.http2.max_ping_strikes", 0),
)


def grpc_server(table: HandlerTable) -> grpc.aio.Server:
    """Not started, and not listening anywhere yet."""
    return grpc.aio.server(handlers=(_Table(table),), options=OPTIONS)


class _Table(grpc.GenericRpcHandler):
    def __init__(self, table: HandlerTable) -> None:
        self._table = table
        self._adapted: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        path = handler_call_details.method
        adapted = self._adapted.get(path)
        if adapted is None:
            method = self._table.find(path)
            if method is None:
                return None
            adapted = self._adapted[path] = _adapted(method)
        return adapted


def _adapted(method: Method) -> grpc.RpcMethodHandler[Any, Any]:
    read = method.request.FromString if method.request is not None else None
    write = _serialize if method.reply is not None else None
    match method.cardinality:
        case Cardinality.UNARY_UNARY:
            return grpc.unary_unary_rpc_method_handler(_unary(method), read, write)
        case Cardinality.UNARY_STREAM:
            return grpc.unary_stream_rpc_method_handler(_replying(method), read, write)
        case Cardinality.STREAM_UNARY:
            return grpc.stream_unary_rpc_method_handler(_collecting(method), read, write)
        case _:
            return grpc.stream_stream_rpc_method_handler(_conversing(method), read, write)


def _serialize(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _unary(method: Method) -> Any:
    handle = method.handle

    async def serve(request: Any, context: _Context) -> Any:
        stream = _Unary(request, context)
        try:
            await handle(stream)
        except Exception as error:
            await _abort(context, error, method)
        return stream.reply

    return serve


def _replying(method: Method) -> Any:
    async def serve(request: Any, context: _Context) -> None:
        await _served(method, _OneRequest(request, context), context)

    return serve


def _collecting(method: Method) -> Any:
    async def serve(requests: AsyncIterator[Any], context: _Context) -> Any:
        del requests
        stream = _Collecting(context)
        await _served(method, stream, context)
        return stream.reply

    return serve


def _conversing(method: Method) -> Any:
    async def serve(requests: AsyncIterator[Any], context: _Context) -> None:
        del requests
        await _served(method, _ManyRequests(context), context)

    return serve


async def _served(method: Method, stream: _Stream, context: _Context) -> None:
    try:
        await method.handle(stream)
    except Exception as error:
        await _abort(context, error, method)


async def _abort(context: _Context, error: Exception, method: Method) -> None:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    status, message = status_of(error, method.path)
    await context.abort(grpc_code(status), message)


class _Stream:
    """What every call has, whatever goes over it. One with a single reply keeps it for the end."""

    __slots__ = ("_context",)

    def __init__(self, context: _Context) -> None:
        self._context = context

    @property
    def metadata(self) -> Metadata:
        return dict(self._context.invocation_metadata() or ())

    @property
    def deadline(self) -> Deadline | None:
        # The stubs know nothing of a call without one.
        left: float | None = self._context.time_remaining()
        return Deadline.from_timeout(left) if left is not None else None

    @property
    def peer(self) -> str:
        return self._context.peer()

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        await self._context.send_initial_metadata(tuple((metadata or {}).items()))

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._context.set_trailing_metadata(tuple((metadata or {}).items()))

    async def recv_message(self) -> Any:
        raise NotImplementedError

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        await self._context.write(message)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class _OneRequest(_Stream):
    __slots__ = ("_request",)

    def __init__(self, request: Any, context: _Context) -> None:
        super().__init__(context)
        self._request = request

    async def recv_message(self) -> Any:
        request, self._request = self._request, None
        return request


class _Unary(_OneRequest):
    __slots__ = ("reply",)

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message


class _ManyRequests(_Stream):
    __slots__ = ()

    async def recv_message(self) -> Any:
        message = await self._context.read()
        return None if message is grpc.aio.EOF else message


class _Collecting(_ManyRequests):
    __slots__ = ("reply",)

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message
