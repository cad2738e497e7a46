"""Serves the handler table with grpc.aio, whose transport is written in C."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import grpc
import grpc.aio
from grpclib.const import Cardinality
from grpclib.metadata import Deadline
from multidict import MultiDict

from cogwork.core.byte_budget import ByteBudget, Hold
from cogwork.core.errors import CogworkError
from cogwork.front.peer_name import Peer, parse_socket_name
from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.front.uploads import SMALL_SIZE
from cogwork.wire.concurrency_limit import STOP_METHODS
from cogwork.wire.first_message import with_timeout
from cogwork.wire.handlers import Handler, HandlerTable, Metadata, Method, NotServed
from cogwork.wire.message_parser import Parse, keep_bytes, make_parser, make_size_check
from cogwork.wire.request_limits import MAX_REQUEST_SIZE
from cogwork.wire.running_calls import RunningCalls
from cogwork.wire.status import grpc_code, status_of
from cogwork.wire.unread_replies import UnreadReplies

MAX_MESSAGE_SIZE = MAX_REQUEST_SIZE
MIB = 1 << 20
MIN_REPLY_SIZE = 4096
"""Bytes of replies that do not count as unread."""
MAX_METADATA_SIZE = 68 * 1024
"""Bytes of the headers of a request: 64 kB of the client's own, and those of gRPC."""

_Context = grpc.aio.ServicerContext[Any, Any]

GRPC_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    # Detect dead peers and close their connections.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Between the two, gRPC would reject calls at random.
    ("grpc.max_metadata_size", MAX_METADATA_SIZE),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_SIZE),
)
"""For servers and clients."""
_SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.so_reuseport", 0),
    # Clients of this API ping every 20 s.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_concurrent_streams", 1024),
    # Otherwise the windows of all streams grow on a fast network. Larger requests get windows of
    # their own, which the relay withholds until there is memory for them.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", SMALL_SIZE),
    ("grpc.http2.max_frame_size", SMALL_SIZE),
    # Effectively unlimited: the relay limits bursts, and gRPC would reject requests at random.
    ("grpc.server.max_pending_requests", 1 << 20),
    ("grpc.server.max_pending_requests_hard_limit", 1 << 20),
    # Cancelled streams that it has not cleaned up yet would count as open, and further ones be
    # refused at random.
    ("grpc.http.overload_protection", 0),
)


class NoReply(CogworkError):
    """A method that replies once ended without a reply."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} ended without a reply; this is a bug in the server")


PeerOf = Callable[[str], Peer]
"""Maps the peer name that grpc reports to the client."""


class _Clients:
    """Tracks the clients behind the calls, and the bytes that the server holds for each."""

    def __init__(
        self,
        requests: ByteBudget,
        peer_of: PeerOf,
        proxies: TrustedProxies,
        running: RunningCalls,
    ) -> None:
        self.running = running
        self._requests = requests
        self._peer_of = peer_of
        self._proxies = proxies
        self._replies = UnreadReplies()

    def peer(self, context: _Context) -> str:
        return self.find(context).address

    def find(self, context: _Context) -> Peer:
        peer = self._peer_of(context.peer())
        if not self._proxies:
            return peer
        return self._proxies.find_client(peer, _text_metadata(context))

    def hold(self, context: _Context) -> Hold:
        """Return what a call holds of the memory: its metadata at first.

        Raise OverBudget if a limit is exceeded.
        """
        hold = Hold(self._requests, self.peer(context))
        metadata = context.invocation_metadata() or ()
        hold.acquire_message(sum(len(name) + len(value) for name, value in metadata))
        return hold

    @property
    def may_be_behind(self) -> bool:
        return not self._replies.is_within_slack

    async def wait_until_read(self, context: _Context) -> None:
        """Wait for a client that leaves its replies unread. Raise RepliesNotRead on timeout."""
        client = self.peer(context)
        if self._replies.is_behind(client):
            await self._replies.wait_until_read(client)

    def track_reply(self, reply: bytes, context: _Context) -> bytes:
        """Count the reply of a unary call until the client has read it."""
        if len(reply) > MIN_REPLY_SIZE:
            client, size = self.peer(context), len(reply)
            self._replies.add(client, size)
            remove: Any = partial(self._untrack_reply, client, size)
            context.add_done_callback(remove)
        return reply

    def _untrack_reply(self, client: str, size: int, _: object) -> None:
        self._replies.remove(client, size)


def _text_metadata(context: _Context) -> Iterator[tuple[str, str]]:
    for key, value in context.invocation_metadata() or ():
        if isinstance(value, str):
            yield key, value


def grpc_server(
    table: HandlerTable,
    peer_of: PeerOf = parse_socket_name,
    proxies: TrustedProxies | None = None,
    running: RunningCalls | None = None,
    max_request_size: int = MAX_REQUEST_SIZE,
) -> grpc.aio.Server:
    """Return a server that is neither started nor listening.

    `running` gets to know its calls. `max_request_size` is for the largest method of the table.
    """
    clients = _Clients(
        table.requests,
        peer_of,
        proxies if proxies is not None else TrustedProxies(),
        running if running is not None else RunningCalls(),
    )
    options = dict(GRPC_OPTIONS + _SERVER_OPTIONS)
    options["grpc.max_receive_message_length"] = max_request_size
    handler = _GenericHandler(table, clients)
    return grpc.aio.server(handlers=(handler,), options=tuple(options.items()))


class _GenericHandler(grpc.GenericRpcHandler):
    def __init__(self, table: HandlerTable, clients: _Clients) -> None:
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
            handler = _to_grpc_handler(method, self._clients)
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


def _to_grpc_handler(method: Method, clients: _Clients) -> grpc.RpcMethodHandler[Any, Any]:
    """Adapt a method to grpc.

    Messages are parsed and serialized here, because grpc would report a Python error to the client.
    """
    match method.cardinality:
        case Cardinality.UNARY_UNARY:
            return grpc.unary_unary_rpc_method_handler(
                _track(_make_unary_unary(method, clients), clients.running)
            )
        case Cardinality.UNARY_STREAM:
            return grpc.unary_stream_rpc_method_handler(
                _track(_make_unary_stream(method, clients), clients.running)
            )
        case Cardinality.STREAM_UNARY:
            return grpc.stream_unary_rpc_method_handler(
                _track(_make_stream_unary(method, clients), clients.running)
            )
        case _:
            return grpc.stream_stream_rpc_method_handler(
                _track(_make_stream_stream(method, clients), clients.running)
            )


def _track(serve: Any, running: RunningCalls) -> Any:
    async def tracked(request: Any, context: _Context) -> Any:
        task = asyncio.current_task()
        assert task is not None
        running.begin(task, context)
        try:
            return await serve(request, context)
        finally:
            running.end(task)

    return tracked


def _make_unary_unary(method: Method, clients: _Clients) -> Any:
    waits = not method.path.endswith(STOP_METHODS)
    handle, parse, route, check = (
        method.handle,
        make_parser(method),
        method.proxy_route,
        make_size_check(method),
    )

    async def serve(data: bytes, context: _Context) -> bytes:
        try:
            with clients.hold(context) as hold:
                hold.acquire_message(len(data))
                if waits and clients.may_be_behind:
                    await clients.wait_until_read(context)
                if route is not None and route.is_enabled() and route.matches(data):
                    stream = _UnaryUnaryCall(context, clients, hold, data, keep_bytes)
                    await route.handle(stream)
                else:
                    check(data)
                    stream = _UnaryUnaryCall(context, clients, hold, data, parse)
                    await handle(stream)
            return clients.track_reply(_encode_single_reply(stream.reply, method), context)
        except BaseException as error:
            _set_error_status(context, error, method)
            return b""

    return serve


def _make_unary_stream(method: Method, clients: _Clients) -> Any:
    handle, parse, route, check = (
        method.handle,
        make_parser(method),
        method.proxy_route,
        make_size_check(method),
    )

    async def serve(data: bytes, context: _Context) -> None:
        try:
            with clients.hold(context) as hold:
                hold.acquire_message(len(data))
                if route is not None and route.is_enabled() and route.matches(data):
                    await route.handle(_UnaryStreamCall(context, clients, hold, data, keep_bytes))
                else:
                    check(data)
                    await handle(_UnaryStreamCall(context, clients, hold, data, parse))
        except BaseException as error:
            _set_error_status(context, error, method)

    return serve


def _make_stream_unary(method: Method, clients: _Clients) -> Any:
    parse, check = make_parser(method), make_size_check(method)

    async def serve(_: AsyncIterator[bytes], context: _Context) -> bytes:
        try:
            with clients.hold(context) as hold:
                stream = _StreamUnaryCall(context, clients, hold, parse, check)
                await (await _select_handler(method, stream))(stream)
            return clients.track_reply(_encode_single_reply(stream.reply, method), context)
        except BaseException as error:
            _set_error_status(context, error, method)
            return b""

    return serve


def _make_stream_stream(method: Method, clients: _Clients) -> Any:
    parse, check = make_parser(method), make_size_check(method)

    async def serve(_: AsyncIterator[bytes], context: _Context) -> None:
        try:
            with clients.hold(context) as hold:
                stream = _StreamStreamCall(context, clients, hold, parse, check)
                await (await _select_handler(method, stream))(stream)
        except BaseException as error:
            _set_error_status(context, error, method)

    return serve


async def _select_handler(method: Method, stream: _StreamStreamCall) -> Handler:
    """Return the handler for the resource that the first message of a client stream names."""
    route = method.proxy_route
    if route is None or not route.is_enabled():
        return method.handle
    first = await with_timeout(stream.peek(), method.path)
    if not route.matches(first):
        return method.handle
    stream.switch_to_raw()
    return route.handle


def _set_error_status(context: _Context, error: BaseException, method: Method) -> None:
    """Turn any error into a status: a driver that exits must not end the process.

    `context.abort` is not used, because the error it raises keeps the received messages alive.
    """
    if isinstance(error, GeneratorExit) or _is_call_cancelled(error):
        raise error
    status, message = status_of(error, method.path)
    context.set_code(grpc_code(status))
    context.set_details(message)


def _is_call_cancelled(error: BaseException) -> bool:
    """Return whether the call itself was cancelled.

    If a driver awaited a cancelled task instead, the client must get an error.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def _encode_single_reply(reply: Any, method: Method) -> bytes:
    if reply is None:
        raise NoReply(method.path)
    return _serialize(reply)


def _serialize(message: Any) -> bytes:
    data: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return data


class _Call:
    """The part that calls of every cardinality share."""

    __slots__ = ("_clients", "_context", "_hold", "_sent_initial_metadata")

    def __init__(self, context: _Context, clients: _Clients, hold: Hold) -> None:
        self._context = context
        self._clients = clients
        self._hold = hold
        self._sent_initial_metadata = False

    @property
    def request(self) -> Any:
        return None

    @property
    def metadata(self) -> Metadata:
        return MultiDict(self._context.invocation_metadata() or ())

    @property
    def deadline(self) -> Deadline | None:
        # The type stubs do not declare that this is None for a call without a deadline.
        left: float | None = self._context.time_remaining()
        return Deadline.from_timeout(left) if left is not None else None

    @property
    def peer(self) -> str:
        return self._clients.peer(self._context)

    @property
    def client(self) -> Peer:
        return self._clients.find(self._context)

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._sent_initial_metadata = True
        await self._context.send_initial_metadata(tuple((metadata or {}).items()))

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._context.set_trailing_metadata(tuple((metadata or {}).items()))

    async def recv_message(self) -> Any:
        raise NotImplementedError

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        if not self._sent_initial_metadata:
            # If the first message is cancelled while it is sent, grpc sends neither the metadata
            # nor the end of the call, and the client waits forever.
            await self.send_initial_metadata()
        await self._context.write(_serialize(message))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class _UnaryStreamCall(_Call):
    """Parses its request when it is first used: after middleware has authenticated the caller."""

    __slots__ = ("_data", "_is_received", "_parse", "_request")

    def __init__(
        self, context: _Context, clients: _Clients, hold: Hold, data: bytes, parse: Parse
    ) -> None:
        # Most calls are of this kind, so this skips the chain of super().__init__ calls.
        self._context = context
        self._clients = clients
        self._hold = hold
        self._sent_initial_metadata = False
        self._data = data
        self._parse = parse
        self._request: Any = None
        self._is_received = False

    @property
    def request(self) -> Any:
        if self._request is None:
            self._request = self._parse(self._data, self._hold)
            self._data = b""
        return self._request

    async def recv_message(self) -> Any:
        if self._is_received:
            return None
        self._is_received = True
        return self.request


class _UnaryUnaryCall(_UnaryStreamCall):
    __slots__ = ("reply",)

    def __init__(
        self, context: _Context, clients: _Clients, hold: Hold, data: bytes, parse: Parse
    ) -> None:
        super().__init__(context, clients, hold, data, parse)
        self.reply: Any = None

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message


class _StreamStreamCall(_Call):
    __slots__ = ("_check", "_held_by_metadata", "_parse", "_peeked", "reply")

    def __init__(
        self,
        context: _Context,
        clients: _Clients,
        hold: Hold,
        parse: Parse,
        check: Callable[[bytes], None],
    ) -> None:
        super().__init__(context, clients, hold)
        self._parse = parse
        self._check = check
        self.reply: Any = None
        self._peeked: Any = None
        self._held_by_metadata = hold.size

    async def peek(self) -> bytes:
        """Return the first message without consuming it; empty if there is none."""
        self._peeked = await self._context.read()
        return b"" if self._peeked is grpc.aio.EOF else self._peeked

    def switch_to_raw(self) -> None:
        """Return later messages as raw bytes, unchecked: the receiver limits their size."""
        self._parse = keep_bytes
        self._check = _accept_any

    async def recv_message(self) -> Any:
        data, self._peeked = self._peeked, None
        if data is None:
            data = await self._context.read()
        # The handler has done with the message before.
        self._hold.reduce(self._held_by_metadata)
        if data is grpc.aio.EOF:
            return None
        self._hold.acquire_message(len(data))
        self._check(data)
        return self._parse(data, self._hold)


def _accept_any(_: bytes) -> None: ...


class _StreamUnaryCall(_StreamStreamCall):
    __slots__ = ()

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message
