"""Serves the handler table to one WebRTC client, over its data channel.

The messages of the channel come from the WebRTC process, over a socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from google.protobuf.message import DecodeError
from grpclib.const import Status
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Request, RequestHeaders, RequestMessage

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.limits.byte_budget import Hold
from cogwork.helpers.message_stream import MessageSplitter
from cogwork.net.peer import Peer
from cogwork.wire.table.event_streams import EventStreamLimits, TooManyStreams
from cogwork.wire.table.first_message import with_timeout
from cogwork.wire.table.handlers import Handler, HandlerTable, Metadata, Method, NotServed
from cogwork.wire.table.status import status_of
from cogwork.wire.transports.call_runner import run_call
from cogwork.wire.transports.channel_frames import (
    encode_headers,
    encode_message,
    encode_trailers,
    is_http_peer,
    read_deadline,
    read_metadata,
)
from cogwork.wire.transports.frame_sender import FrameSender
from cogwork.wire.transports.packet_assembler import PACKET_OVERHEAD, PacketAssembler
from cogwork.wire.transports.received_call import ReceivedCall
from cogwork.wire.transports.unread_replies import RepliesNotRead, UnreadReplies

MAX_CALLS = 256 + EventStreamLimits().per_client
"""Maximum calls in flight, including open event streams."""
_LARGE_PACKET = 60_000
SMALL_PACKET = 16_384
"""Bytes of a reply per frame. Larger frames are faster, but delay other calls."""
_MAX_UNSENT = 1 << 20
"""Maximum bytes that a client may leave unread. If more are unread when the client sends a frame,
the client is disconnected."""
_FRAME_BATCH = 64
"""Number of frames that are handled in one iteration of the event loop."""

_log = logging.getLogger("rdk.networking")


class DataChannel(FrameSender):
    def __init__(
        self,
        table: HandlerTable,
        client: Peer,
        metadata: Metadata,
        replies: UnreadReplies,
        on_end: Callable[[], None],
    ) -> None:
        """`metadata` is added to every call. It contains the login of the client."""
        super().__init__()
        self._table = table
        self.client = client
        self._metadata = metadata
        self.requests = table.requests
        self.replies = replies
        self._on_end = on_end
        self._splitter = MessageSplitter()
        self._frames: deque[bytes] = deque()
        """Received frames that are not handled yet."""
        self._calls: dict[int, _Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._frames.clear()
        for task in self._tasks:
            task.cancel()
        self._on_end()

    def data_received(self, data: bytes) -> None:
        is_idle = not self._frames
        self._frames.extend(self._splitter.feed(data))
        if is_idle:
            self._receive_frames()

    def _receive_frames(self) -> None:
        """Handle a batch of received frames. The batch is limited to keep the event loop
        responsive."""
        assert self._transport is not None
        if self._transport.is_closing():
            return
        if self._transport.get_write_buffer_size() > _MAX_UNSENT:
            _log.warning("disconnecting %s: it does not read its replies", self.client.address)
            self.close()
            return
        for _ in range(min(_FRAME_BATCH, len(self._frames))):
            try:
                request = Request.FromString(self._frames.popleft())
            except DecodeError:
                continue
            if request.HasField("stream"):
                self._receive(request.stream.id, request)
        if self._frames:
            self._transport.pause_reading()
            asyncio.get_running_loop().call_soon(self._receive_frames)
        else:
            self._transport.resume_reading()

    @property
    def packet_size(self) -> int:
        return _LARGE_PACKET if len(self._calls) == 1 else SMALL_PACKET

    def _receive(self, number: int, request: Request) -> None:
        kind = request.WhichOneof("type")
        if kind == "headers":
            self._start(number, request.headers)
            return
        call = self._calls.get(number)
        if call is None:
            return  # the frame belongs to a call that has ended
        if kind == "message":
            try:
                call.receive(request.message)
            except CogworkError as error:
                self._end(number, *status_of(error, call.path))
        elif kind == "rst_stream" and request.rst_stream:
            self._end(number, Status.CANCELLED, "request cancelled")

    def _start(self, number: int, headers: RequestHeaders) -> None:
        if number in self._calls:
            self._end(number, Status.INVALID_ARGUMENT, "headers already received")
            return
        call = _Call(self, number, headers)
        try:
            call.deadline = read_deadline(headers)
            method = self._find(headers.method)
            call.hold.acquire_message(headers.ByteSize())
        except Exception as error:
            call.finish(*status_of(error, call.path))
            return
        call.metadata.update(self._metadata)
        call.prepare(method)
        self._calls[number] = call
        call.task = asyncio.get_running_loop().create_task(self._serve(number, call, method))
        self._tasks.add(call.task)
        call.task.add_done_callback(self._tasks.discard)
        # Release the bytes here and not in the task: a task that is cancelled before it starts runs
        # no code.
        call.task.add_done_callback(lambda _: call.hold.reduce(0))

    def _find(self, path: str) -> Method:
        """Return the method. Raise CogworkError if it cannot be called, or the error with which its
        service failed to load."""
        if len(self._tasks) >= MAX_CALLS:
            raise TooManyStreams(
                f"this client has {MAX_CALLS} calls in flight; wait for some to end"
            )
        method = self._table.find(path)
        if method is None:
            raise NotServed(path)
        return method

    async def _serve(self, number: int, call: _Call, method: Method) -> None:
        try:
            if not self.replies.is_within_slack and self.replies.is_behind(self.client.address):
                await self.replies.wait_until_read(self.client.address)
            status, message = await run_call(method, call)
        except RepliesNotRead as error:
            status, message = status_of(error, call.path)
        finally:
            if self._calls.get(number) is call:
                del self._calls[number]
        # Wait until the client reads again. Until then, the call counts as in flight.
        await self._writable.wait()
        call.finish(status, message)

    def _end(self, number: int, status: Status, message: str) -> None:
        """End a call, and cancel its task."""
        call = self._calls.pop(number)
        call.finish(status, message)
        if call.task is not None:
            call.task.cancel()


class _Call(ReceivedCall):
    def __init__(self, channel: DataChannel, number: int, headers: RequestHeaders) -> None:
        hold = Hold(channel.requests, channel.client.address)
        super().__init__(channel.client, read_metadata(headers), hold)
        self.path = headers.method[:200]
        self.task: asyncio.Task[None] | None = None
        self._channel = channel
        self._number = number
        self._is_quoted = is_http_peer(headers)
        self._requests = PacketAssembler("message", hold, _charge_packet)
        self._current_charge = 0
        """The memory reserved for the message that the handler processes, in bytes."""
        self._is_half_closed = False
        self._arrived: asyncio.Future[None] | None = None
        self._replies_once = False
        self._is_received = False
        self._sent_headers = False
        self._unsent: list[bytes] = []
        """Frames that wait to be sent together with the next frames."""
        self._trailers: Metadata = {}
        self._is_finished = False

    def prepare(self, method: Method) -> None:
        self._takes_stream = method.cardinality.client_streaming
        self._replies_once = not (method.cardinality.server_streaming or method.is_unregistered)

    def receive(self, message: RequestMessage) -> None:
        """Process a packet of the client. Raise CogworkError if it cannot be accepted."""
        if self._is_half_closed:
            return
        if message.has_message and not self._requests.add(message.packet_message):
            return
        # Some clients set `eos` in every packet of the last message, so read `eos` only at the end
        # of the message.
        self._is_half_closed = message.eos
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def finish(self, status: Status, message: str) -> None:
        if self._is_finished:
            return
        self._is_finished = True
        self._add_headers({})
        trailers = encode_trailers(
            self._number, status, message, self._trailers, quoted=self._is_quoted
        )
        self._channel.send_now(*self._unsent, trailers)

    async def select_handler(self, method: Method) -> Handler:
        """Return the handler for the resource that the first message names."""
        messages = self._requests.messages
        if not self._takes_stream or method.is_routed:
            await with_timeout(self._wait_for_message(), method.path)
            if not messages and not self._takes_stream:
                raise InvalidRequest(f"{method.path} takes exactly one message")
        return self._choose_handler(method, messages[0].data if messages else b"")

    async def recv_message(self) -> Any:
        if not self._takes_stream:
            is_first, self._is_received = not self._is_received, True
            return self.request if is_first else None
        await self._wait_for_message()
        if not self._requests.messages:
            return None
        self.hold.reduce(self.hold.size - self._current_charge)
        before = self.hold.size
        data, charge = self._requests.messages.popleft()
        message = self._parse_message(data)
        self._current_charge = charge + self.hold.size - before
        return message

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        if self._is_finished:
            return  # the call was cancelled, but its handler continues
        data = message if isinstance(message, bytes) else message.SerializeToString()
        self._add_headers({})
        self.has_replied = True
        frames = encode_message(self._number, data, self._channel.packet_size)
        if self._replies_once and len(data) <= SMALL_PACKET:
            self._unsent += frames
            return
        self._send_unsent()
        self._channel.replies.add(self.peer, len(data))
        try:
            await self._channel.send(frames)
        finally:
            self._channel.replies.remove(self.peer, len(data))

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        if not self._is_finished:
            self._add_headers(metadata or {})
            self._send_unsent()

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._trailers = metadata or {}

    def _take_request(self) -> bytes:
        return self._requests.messages.popleft().data

    async def _wait_for_message(self) -> None:
        """Wait for a message or the end of the client's messages."""
        while not self._requests.messages and not self._is_half_closed:
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived

    def _add_headers(self, metadata: Metadata) -> None:
        if not self._sent_headers:
            self._sent_headers = True
            self._unsent.append(encode_headers(self._number, metadata))

    def _send_unsent(self) -> None:
        self._channel.send_now(*self._unsent)
        self._unsent.clear()


def _charge_packet(hold: Hold, size: int) -> None:
    hold.acquire(PACKET_OVERHEAD)
    hold.acquire_part(size)
