"""Serves the handler table to browsers, as gRPC-web over HTTP/1.1.

A browser cannot stream requests, so a request is read completely before the call starts. Replies
are streamed.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any

from grpclib.const import Status
from multidict import MultiDict

from cogwork.core.errors import InvalidRequest, Unsupported
from cogwork.core.limits.byte_budget import Hold
from cogwork.wire.messages.deadline import parse_deadline
from cogwork.wire.table.handlers import Handler, HandlerTable, Metadata, Method, NotServed, Stream
from cogwork.wire.table.request_limits import MAX_REQUEST_SIZE
from cogwork.wire.table.status import quote_message, status_of
from cogwork.wire.transports.asgi import ABORT_KEY, CLIENT_KEY
from cogwork.wire.transports.call_runner import run_call
from cogwork.wire.transports.http_body import ClientGone, Receive, read_body
from cogwork.wire.transports.received_call import ReceivedCall

CONTENT_TYPE = "application/grpc-web"
_TEXT_CONTENT_TYPE = "application/grpc-web-text"
_CONTENT_TYPES = (
    CONTENT_TYPE,
    f"{CONTENT_TYPE}+proto",
    _TEXT_CONTENT_TYPE,
    f"{_TEXT_CONTENT_TYPE}+proto",
)

_HEADER_SIZE = 5
_COMPRESSED, _TRAILERS = 0x01, 0x80
"""Flags in the first byte of a gRPC-web frame."""
_MAX_MESSAGES = 1000
"""Maximum messages of a request to a method that takes a stream."""
_CHUNK_SIZE = 3 * 64 * 1024
"""Bytes of a reply per chunk. A multiple of three, because base64 encodes groups of three bytes."""
_FIRST_CHUNK_SIZE = _CHUNK_SIZE - _HEADER_SIZE
_HTTP_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "accept-language", "cache-control", "connection"),
        *("content-length", "content-type", "cookie", "dnt", "host", "keep-alive", "origin"),
        *("pragma", "priority", "referer", "te", "transfer-encoding", "upgrade", "x-grpc-web"),
    }
)
"""Headers of HTTP itself, which are not call metadata."""

Send = Callable[[Any], Awaitable[None]]


def is_grpc_web(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in _CONTENT_TYPES


class GrpcWebApp:
    """The ASGI application for gRPC-web."""

    def __init__(self, table: HandlerTable, check: Callable[[Method, Stream], None]) -> None:
        """`check` raises an error if the caller may not make the call. It runs before the request
        is read."""
        self._table = table
        self._check = check

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers = MultiDict((k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"])
        response = _Response(send, headers["content-type"], scope["state"][ABORT_KEY])
        path = scope["path"]
        with Hold(self._table.requests, scope["state"][CLIENT_KEY].address) as hold:
            call = _Call(scope, headers, response, hold)
            try:
                method = self._find(path)
                call.read_deadline(headers)
                self._check(method, call)
                hold.acquire_message(sum(len(name) + len(value) for name, value in headers.items()))
                body = await read_body(receive, response.max_body_size, hold.acquire_part)
                call.receive(_decode_text(body) if response.is_text else body, method)
                del body
                status, message = await _run_until_disconnected(run_call(method, call), receive)
            except asyncio.CancelledError:
                raise
            except ClientGone:
                return
            except Exception as error:
                status, message = status_of(error, path)
        await response.finish(status, message)

    def _find(self, path: str) -> Method:
        method = self._table.find(path)
        if method is None:
            raise NotServed(path)
        return method


class _Call(ReceivedCall):
    def __init__(
        self, scope: Any, headers: MultiDict[str], response: _Response, hold: Hold
    ) -> None:
        metadata: MultiDict[str | bytes] = MultiDict(
            (name, value)
            for name, value in headers.items()
            if name not in _HTTP_HEADERS and not name.startswith("sec-")
        )
        super().__init__(scope["state"][CLIENT_KEY], metadata, hold)
        self._messages: list[bytes] = []
        self._unread: deque[bytes] = deque()
        self._response = response

    def read_deadline(self, headers: Mapping[str, str]) -> None:
        self.deadline = parse_deadline(headers.get("grpc-timeout"))

    def receive(self, body: bytes, method: Method) -> None:
        """Process the messages of the request."""
        self._takes_stream = method.cardinality.client_streaming
        most = _MAX_MESSAGES if self._takes_stream else 1
        self._messages = list(itertools.islice(_split_frames(body), most + 1))
        if len(self._messages) > most or (not self._takes_stream and not self._messages):
            raise InvalidRequest(
                f"{method.path} takes exactly one message"
                if most == 1
                else f"the request has more than {most} messages"
            )
        self._unread.extend(self._messages)

    async def select_handler(self, method: Method) -> Handler:
        """Return the handler for the resource that the first message names."""
        return self._choose_handler(method, self._messages[0] if self._messages else b"")

    async def recv_message(self) -> Any:
        if not self._unread:
            return None
        data = self._unread.popleft()
        return self._parse_message(data) if self._takes_stream else self.request

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        data = message if isinstance(message, bytes) else message.SerializeToString()
        self.has_replied = True
        await self._response.send_frame(0, data)

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        await self._response.start(metadata or {})

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._response.trailers = metadata or {}

    def _take_request(self) -> bytes:
        return self._messages[0]


class _Response:
    def __init__(self, send: Send, content_type: str, abort: Callable[[], None]) -> None:
        self._send = send
        self._content_type = content_type
        self._abort = abort
        self._is_started = False
        self._is_in_frame = False
        """Whether a frame of the reply was sent only in part."""
        self.trailers: Metadata = {}
        self.is_text = content_type.lower().startswith(_TEXT_CONTENT_TYPE)

    @property
    def max_body_size(self) -> int:
        """Maximum bytes of a request. In base64, three bytes become four."""
        most = MAX_REQUEST_SIZE + _HEADER_SIZE
        return most * 4 // 3 + 4 if self.is_text else most

    async def start(self, metadata: Metadata) -> None:
        if self._is_started:
            return
        self._is_started = True
        headers = [(b"content-type", self._content_type.encode("latin-1"))]
        headers += [(name.encode(), _encode_value(value)) for name, value in metadata.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    async def send_frame(self, flags: int, data: bytes) -> None:
        await self.start({})
        head = bytes((flags,)) + len(data).to_bytes(4, "big")
        self._is_in_frame = True
        await self._send_body(head + data[:_FIRST_CHUNK_SIZE])
        for start in range(_FIRST_CHUNK_SIZE, len(data), _CHUNK_SIZE):
            await self._send_body(data[start : start + _CHUNK_SIZE])
        self._is_in_frame = False

    async def finish(self, status: Status, message: str = "") -> None:
        if self._is_in_frame:
            # Abort, because the client would read the status as a part of the incomplete message.
            self._abort()
            return
        lines = [f"grpc-status: {status.value}"]
        if message:
            lines.append(f"grpc-message: {quote_message(message)}")
        trailers = "".join(f"{line}\r\n" for line in lines).encode()
        for name, value in self.trailers.items():
            trailers += name.encode() + b": " + _encode_value(value) + b"\r\n"
        await self.send_frame(_TRAILERS, trailers)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_body(self, data: bytes) -> None:
        # Encode each chunk separately: all but the last chunk of a frame have a multiple of three
        # bytes, so their base64 has no padding.
        body = base64.b64encode(data) if self.is_text else data
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


def _encode_value(value: str | bytes) -> bytes:
    """Encode a metadata value. Bytes, whose names end in `-bin`, are encoded in base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).rstrip(b"=")
    return value.encode("latin-1", errors="replace").replace(b"\r", b" ").replace(b"\n", b" ")


def _decode_text(body: bytes) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error:
        raise InvalidRequest("the request is not valid base64") from None


def _split_frames(body: bytes) -> Iterator[bytes]:
    """Yield the messages of a request."""
    at = 0
    while at < len(body):
        head = body[at : at + _HEADER_SIZE]
        size = int.from_bytes(head[1:], "big")
        at += _HEADER_SIZE
        if len(head) < _HEADER_SIZE or at + size > len(body):
            raise InvalidRequest("the request is truncated: its last message is incomplete")
        if head[0] & _COMPRESSED:
            raise Unsupported("compressed messages are not supported")
        if not head[0] & _TRAILERS:
            yield body[at : at + size]
        at += size


async def _run_until_disconnected(
    call: Coroutine[Any, Any, tuple[Status, str]], receive: Receive
) -> tuple[Status, str]:
    """Return the status of the call. If the client disconnects, cancel the call and raise
    ClientGone."""
    serving = asyncio.ensure_future(call)
    watching = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait({serving, watching}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            return serving.result()
        raise ClientGone("the client closed the connection")
    finally:
        serving.cancel()
        watching.cancel()
        await asyncio.gather(serving, watching, return_exceptions=True)


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
