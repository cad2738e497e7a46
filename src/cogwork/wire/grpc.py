"""The handler table on grpc.aio, which moves the bytes in C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from grpclib.const import Cardinality
from grpclib.metadata import Deadline
from multidict import MultiDict

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.wire.first import in_time
from cogwork.wire.handlers import Handle, HandlerTable, Metadata, Method
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
    # Whoever is gone without a word is noticed, and gives its connection back.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 1024),
)


class Unanswered(CogworkError):
    """A method that replies once ended without a reply."""


PeerOf = Callable[[str], str]
"""The client's address, given the name by which the listener knows it."""


def grpc_server(table: HandlerTable, peer_of: PeerOf = str) -> grpc.aio.Server:
    """Not started, and not listening anywhere yet."""
    return grpc.aio.server(handlers=(_Table(table, peer_of),), options=OPTIONS)


class _Table(grpc.GenericRpcHandler):
    def __init__(self, table: HandlerTable, peer_of: PeerOf) -> None:
        self._table = table
        self._peer_of = peer_of
        self._adapted: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        path = handler_call_details.method
        adapted = self._adapted.get(path)
        if adapted is None:
            method = self._find(path)
            if method is None:
                return None
            adapted = _adapted(method, self._peer_of)
            if not method.foreign:
                self._adapted[path] = adapted
        return adapted

    def _find(self, path: str) -> Method | None:
        try:
            return self._table.find(path)
        except Exception as error:
            return _failing(path, error)


def _failing(path: str, error: Exception) -> Method:
    """Of a service that cannot be loaded."""

    async def fail(_: object) -> NoReturn:
        raise error

    return Method(path, Cardinality.STREAM_STREAM, fail, foreign=True)


def _adapted(method: Method, peer_of: PeerOf) -> grpc.RpcMethodHandler[Any, Any]:
    """Messages are read and written here: grpc would tell a client of a Python error."""
    match method.cardinality:
        case Cardinality.UNARY_UNARY:
            return grpc.unary_unary_rpc_method_handler(_unary(method, peer_of))
        case Cardinality.UNARY_STREAM:
            return grpc.unary_stream_rpc_method_handler(_replying(method, peer_of))
        case Cardinality.STREAM_UNARY:
            return grpc.stream_unary_rpc_method_handler(_collecting(method, peer_of))
        case _:
            return grpc.stream_stream_rpc_method_handler(_conversing(method, peer_of))


def _unary(method: Method, peer_of: PeerOf) -> Any:
    handle, read, twin = method.handle, _reader(method), method.twin

    async def serve(data: bytes, context: _Context) -> bytes:
        try:
            if twin is not None and twin.is_of_use() and twin.takes(data):
                stream = _Unary(context, peer_of, data)
                await twin.handle(stream)
            else:
                stream = _Unary(context, peer_of, read(data))
                await handle(stream)
            return _only(stream.reply, method)
        except BaseException as error:
            _tell(context, error, method)
            return b""

    return serve


def _replying(method: Method, peer_of: PeerOf) -> Any:
    handle, read, twin = method.handle, _reader(method), method.twin

    async def serve(data: bytes, context: _Context) -> None:
        try:
            if twin is not None and twin.is_of_use() and twin.takes(data):
                await twin.handle(_Replying(context, peer_of, data))
            else:
                await handle(_Replying(context, peer_of, read(data)))
        except BaseException as error:
            _tell(context, error, method)

    return serve


def _collecting(method: Method, peer_of: PeerOf) -> Any:
    read = _reader(method)

    async def serve(_: AsyncIterator[bytes], context: _Context) -> bytes:
        try:
            stream = _Collecting(context, peer_of, read)
            await (await _whose(method, stream))(stream)
            return _only(stream.reply, method)
        except BaseException as error:
            _tell(context, error, method)
            return b""

    return serve


def _conversing(method: Method, peer_of: PeerOf) -> Any:
    read = _reader(method)

    async def serve(_: AsyncIterator[bytes], context: _Context) -> None:
        try:
            stream = _Conversing(context, peer_of, read)
            await (await _whose(method, stream))(stream)
        except BaseException as error:
            _tell(context, error, method)

    return serve


async def _whose(method: Method, stream: _Conversing) -> Handle:
    """Where a client sends several messages, the first one says whom they are for."""
    twin = method.twin
    if twin is None or not twin.is_of_use():
        return method.handle
    first = await in_time(stream.look_ahead(), method.path)
    if not twin.takes(first):
        return method.handle
    stream.read_nothing()
    return twin.handle


def _tell(context: _Context, error: BaseException, method: Method) -> None:
    """Whatever it is: a driver that exits must not take everybody else with it.

    Not by `context.abort`, whose own error stays with the call, and with it what was received.
    """
    if isinstance(error, GeneratorExit) or _is_cancelled(error):
        raise error
    status, message = status_of(error, method.path)
    context.set_code(grpc_code(status))
    context.set_details(message)


def _is_cancelled(error: BaseException) -> bool:
    """Whether the call is; of a driver that awaits a cancelled task, the client must be told."""
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _reader(method: Method) -> Callable[[bytes], Any]:
    kind = method.request
    if kind is None:
        return bytes
    parse = kind.FromString

    def read(data: bytes) -> Any:
        try:
            return parse(data)
        except DecodeError:
            name = kind.DESCRIPTOR.full_name
            raise InvalidRequest(f"the request to {method.path} is no {name} message") from None

    return read


def _only(reply: Any, method: Method) -> bytes:
    if reply is None:
        raise Unanswered(f"{method.path} ended without a reply; this is a fault of the server")
    return _bytes(reply)


def _bytes(message: Any) -> bytes:
    data: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return data


class _Stream:
    """What every call has, whatever goes over it."""

    __slots__ = ("_context", "_greeted", "_peer_of")

    request: Any = None

    def __init__(self, context: _Context, peer_of: PeerOf) -> None:
        self._context = context
        self._peer_of = peer_of
        self._greeted = False

    @property
    def metadata(self) -> Metadata:
        return MultiDict(self._context.invocation_metadata() or ())

    @property
    def deadline(self) -> Deadline | None:
        # The stubs know nothing of a call without one.
        left: float | None = self._context.time_remaining()
        return Deadline.from_timeout(left) if left is not None else None

    @property
    def peer(self) -> str:
        return self._peer_of(self._context.peer())

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._greeted = True
        await self._context.send_initial_metadata(tuple((metadata or {}).items()))

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._context.set_trailing_metadata(tuple((metadata or {}).items()))

    async def recv_message(self) -> Any:
        raise NotImplementedError

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        if not self._greeted:
            # A first message that is cancelled on its way would take the metadata, and with them
            # the end of the call, along: the client would wait for ever.
            await self.send_initial_metadata()
        await self._context.write(_bytes(message))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class _Replying(_Stream):
    __slots__ = ("_unread", "request")

    def __init__(self, context: _Context, peer_of: PeerOf, request: Any) -> None:
        super().__init__(context, peer_of)
        self.request = self._unread = request

    async def recv_message(self) -> Any:
        request, self._unread = self._unread, None
        return request


class _Unary(_Replying):
    __slots__ = ("reply",)

    def __init__(self, context: _Context, peer_of: PeerOf, request: Any) -> None:
        # Not by way of the others: this is what most calls are.
        self._context = context
        self._peer_of = peer_of
        self.request = self._unread = request
        self.reply: Any = None

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message


class _Conversing(_Stream):
    __slots__ = ("_ahead", "_read")

    def __init__(self, context: _Context, peer_of: PeerOf, read: Callable[[bytes], Any]) -> None:
        super().__init__(context, peer_of)
        self._read = read
        self._ahead: Any = None

    async def look_ahead(self) -> bytes:
        """The first message, which is still to come; empty if there is none."""
        self._ahead = await self._context.read()
        return b"" if self._ahead is grpc.aio.EOF else self._ahead

    def read_nothing(self) -> None:
        """From here on messages are the bytes that come."""
        self._read = bytes

    async def recv_message(self) -> Any:
        data, self._ahead = self._ahead, None
        if data is None:
            data = await self._context.read()
        return None if data is grpc.aio.EOF else self._read(data)


class _Collecting(_Conversing):
    __slots__ = ("reply",)

    def __init__(self, context: _Context, peer_of: PeerOf, read: Callable[[bytes], Any]) -> None:
        super().__init__(context, peer_of, read)
        self.reply: Any = None

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message
