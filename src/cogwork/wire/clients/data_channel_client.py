"""Calls over a WebRTC data channel, with the interface of a grpc.aio channel.

The messages of the data channel come from the WebRTC process, over a socket. The protocol has no
flow control for single calls. So a call is ended if its unread replies exceed a limit, because
waiting for its reader would delay all other calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Generator, Iterable
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import PacketMessage, Response, ResponseTrailers

from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.byte_budget import ByteBudget, Hold, OverBudget
from cogwork.helpers.message_stream import MessageSplitter
from cogwork.wire.table.status import code_of_number
from cogwork.wire.transports.channel_frames import (
    REQUEST_PACKET_SIZE,
    decode_metadata,
    encode_half_close,
    encode_request,
    encode_request_headers,
    encode_reset,
)
from cogwork.wire.transports.frame_sender import FrameSender
from cogwork.wire.transports.packet_assembler import PACKET_OVERHEAD, PacketAssembler

MAX_CALLS: Final = 768
"""Maximum number of calls and streams in flight. A Cogwork server has the same limit."""
_MIB: Final = 1 << 20
_MAX_UNSENT: Final = 4 * _MIB
"""Maximum bytes that wait to be sent. Above that, no call starts."""
_ERROR_DELAY: Final = 0.05
"""Seconds to wait for an error after empty headers."""

MetadataPairs = Iterable[tuple[str, str | bytes]]
Coding = Callable[[Any], Any]


class DataChannelClient(FrameSender):
    def __init__(self) -> None:
        super().__init__()
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the channel is closed."""
        self.unread = ByteBudget("unread replies", total=256 * _MIB, per_client=64 * _MIB)
        self._splitter = MessageSplitter()
        self._calls: dict[int, DataChannelCall] = {}
        self._numbers = itertools.count(1)

    def unary_unary(
        self,
        path: str,
        /,
        request_serializer: Coding | None = None,
        response_deserializer: Coding | None = None,
    ) -> Callable[..., DataChannelCall]:
        return self._method(path, request_serializer, response_deserializer)

    unary_stream = stream_stream = unary_unary
    """Methods of every cardinality start the same class of call; callers use different methods of
    it."""

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._transport = None
        if not self.lost.done():
            self.lost.set_result(None)
        for call in tuple(self._calls.values()):
            call.finish(_LOST)

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            try:
                response = Response.FromString(frame)
            except DecodeError:
                continue
            call = self._calls.get(response.stream.id)
            if call is not None:  # None: the call has ended
                call.receive(response)

    def forget(self, number: int) -> None:
        self._calls.pop(number, None)

    def _method(
        self, path: str, serialize: Coding | None, deserialize: Coding | None
    ) -> Callable[..., DataChannelCall]:
        def start(
            request: Any = None,
            *,
            timeout: float | None = None,
            metadata: MetadataPairs | None = None,
        ) -> DataChannelCall:
            call = DataChannelCall(self, next(self._numbers), serialize, deserialize)
            try:
                self._check_limits(timeout)
                headers = encode_request_headers(call.number, path, metadata or (), timeout)
            except CallRefused as error:
                call.finish(error.status)
            except ValueError as error:
                call.finish(_too_much(str(error)))
            else:
                frames = call.prepare(request)
                self._calls[call.number] = call
                call.expire_after(timeout)
                self.send_now(headers, *frames)
            return call

        return start

    def _check_limits(self, timeout: float | None) -> None:
        """Raise CallRefused if no call can be started."""
        if self._transport is None or self._transport.is_closing():
            raise CallRefused(_LOST)
        if len(self._calls) >= MAX_CALLS:
            raise CallRefused(_TOO_MANY)
        if self._transport.get_write_buffer_size() > _MAX_UNSENT:
            raise CallRefused(_BUSY)
        if timeout is not None and timeout <= 0:
            raise CallRefused(_EXPIRED)


class CallStatus(NamedTuple):
    code: grpc.StatusCode
    details: str
    trailers: grpc.aio.Metadata = grpc.aio.Metadata()


class CallRefused(Exception):
    """A call was rejected before it was sent."""

    def __init__(self, status: CallStatus) -> None:
        super().__init__(status.details)
        self.status = status


_LOST: Final = CallStatus(
    grpc.StatusCode.UNAVAILABLE, "the WebRTC connection to the other machine was lost; try again"
)
_TOO_MANY: Final = CallStatus(
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    f"there are {MAX_CALLS} calls in flight to the other machine; wait for some to end",
)
_BUSY: Final = CallStatus(
    grpc.StatusCode.UNAVAILABLE, "the other machine does not read what it is sent; try again later"
)
_EXPIRED: Final = CallStatus(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
_CANCELLED: Final = CallStatus(grpc.StatusCode.CANCELLED, "Locally cancelled by application!")
_NO_REPLY: Final = CallStatus(grpc.StatusCode.INTERNAL, "the call ended without a reply")


class DataChannelCall:
    """One call, with the part of grpc.aio's interface that Cogwork uses."""

    def __init__(
        self,
        channel: DataChannelClient,
        number: int,
        serialize: Coding | None,
        deserialize: Coding | None,
    ) -> None:
        self.number = number
        self._channel = channel
        self._serialize = serialize
        self._deserialize = deserialize
        loop = asyncio.get_running_loop()
        self._initial: asyncio.Future[grpc.aio.Metadata] = loop.create_future()
        self._ended: asyncio.Future[CallStatus] = loop.create_future()
        self._arrived = asyncio.Event()
        """Set when a message has arrived, or the call has ended."""
        self._unread = Hold(channel.unread, str(number))
        self._replies = PacketAssembler("reply", self._unread, _charge_packet)
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None

    def prepare(self, request: Any) -> Iterable[bytes]:
        """Return the frames to send together with the headers. For a large or streamed request,
        return none, and send the request in a task."""
        if request is None:
            return ()
        loop = asyncio.get_running_loop()
        if hasattr(request, "__next__"):
            self._sending = loop.create_task(self._send_all(request))
            return ()
        data = self._encode(request)
        frames = encode_request(self.number, data, end=True)
        if len(data) <= REQUEST_PACKET_SIZE:
            return frames
        self._sending = loop.create_task(self._channel.send(frames))
        return ()

    def expire_after(self, seconds: float | None) -> None:
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self._end, _EXPIRED)

    async def write(self, request: Any) -> None:
        if self.done():
            raise asyncio.InvalidStateError("the call has ended")
        frames = encode_request(self.number, self._encode(request), end=False)
        await self._channel.send(itertools.takewhile(lambda _: not self.done(), frames))

    async def done_writing(self) -> None:
        if not self.done():
            await self._channel.send((encode_half_close(self.number),))

    async def read(self) -> Any:
        """Return the next message; EOF after the last message. Raise AioRpcError if the call
        fails."""
        try:
            await self._wait_for_message()
        except asyncio.CancelledError:
            self.cancel()
            raise
        if self._replies.messages:
            return self._take_message()
        if self._ended.result().code is not grpc.StatusCode.OK:
            raise self._error()
        return grpc.aio.EOF

    def __await__(self) -> Generator[Any, None, Any]:
        return self._read_single().__await__()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.read()) is not grpc.aio.EOF:
            yield message

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """Return the initial metadata.

        Servers send headers even before an error. So if the headers are empty, wait briefly for an
        error, as over HTTP/2, where an immediate error replaces the headers.
        """
        initial = await asyncio.shield(self._initial)
        if not initial:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ERROR_DELAY):
                    await self._wait_for_message()
        return initial

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        return (await asyncio.shield(self._ended)).trailers

    async def code(self) -> grpc.StatusCode:
        return (await asyncio.shield(self._ended)).code

    async def details(self) -> str:
        return (await asyncio.shield(self._ended)).details

    def done(self) -> bool:
        return self._ended.done()

    def cancel(self) -> bool:
        if self.done():
            return False
        self._end(_CANCELLED)
        return True

    def receive(self, response: Response) -> None:
        match response.WhichOneof("type"):
            case "headers":
                if not self._initial.done():
                    pairs = decode_metadata(response.headers.metadata)
                    self._initial.set_result(grpc.aio.Metadata(*pairs))
            case "message":
                self._receive_packet(response.message.packet_message)
            case "trailers":
                self.finish(_read_status(response.trailers))

    def finish(self, status: CallStatus) -> None:
        """End the call. Messages that have arrived can still be read."""
        if self.done():
            return
        self._channel.forget(self.number)
        self._ended.set_result(status)
        if not self._initial.done():
            self._initial.set_result(grpc.aio.Metadata())
        if self._timer is not None:
            self._timer.cancel()
        if self._sending is not None:
            self._sending.cancel()
        self._replies.drop_partial()
        self._unread.reduce(0)
        self._arrived.set()

    def _end(self, status: CallStatus) -> None:
        """End the call, and tell the server."""
        self.finish(status)
        self._replies.messages.clear()
        self._channel.send_now(encode_reset(self.number))

    def _receive_packet(self, packet: PacketMessage) -> None:
        try:
            if self._replies.add(packet):
                self._arrived.set()
        except InvalidRequest as error:
            self._end(_too_much(str(error)))
        except OverBudget:
            self._end(_too_much("the replies of this call are not read; read them faster"))

    def _take_message(self) -> Any:
        data, charge = self._replies.messages.popleft()
        if not self.done():  # the bytes were released when the call ended
            self._unread.reduce(self._unread.size - charge)
        return data if self._deserialize is None else self._deserialize(data)

    async def _read_single(self) -> Any:
        reply = await self.read()
        if reply is grpc.aio.EOF:
            raise grpc.aio.AioRpcError(_NO_REPLY.code, details=_NO_REPLY.details)
        # Read to the end, because only the final status shows whether the call succeeded.
        while await self.read() is not grpc.aio.EOF:
            pass
        return reply

    async def _send_all(self, requests: Any) -> None:
        for request in requests:
            await self.write(request)
        await self.done_writing()

    def _encode(self, request: Any) -> bytes:
        data: bytes = request if self._serialize is None else self._serialize(request)
        return data

    async def _wait_for_message(self) -> None:
        """Wait for a message or the end of the call."""
        while not self._replies.messages and not self.done():
            self._arrived.clear()
            await self._arrived.wait()

    def _error(self) -> grpc.aio.AioRpcError:
        status = self._ended.result()
        return grpc.aio.AioRpcError(
            status.code, self._initial.result(), status.trailers, status.details
        )


def _charge_packet(hold: Hold, size: int) -> None:
    hold.acquire(size + PACKET_OVERHEAD)


def _read_status(trailers: ResponseTrailers) -> CallStatus:
    metadata = grpc.aio.Metadata(*decode_metadata(trailers.metadata))
    return CallStatus(code_of_number(trailers.status.code), trailers.status.message, metadata)


def _too_much(text: str) -> CallStatus:
    return CallStatus(grpc.StatusCode.RESOURCE_EXHAUSTED, text)
