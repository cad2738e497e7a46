"""A WebRTC client in Python, which connects through signaling and makes calls over the channel."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Self

import aioice.ice
import grpc.aio
from aiortc import (
    RTCConfiguration,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import (
    Metadata,
    PacketMessage,
    Request,
    RequestHeaders,
    RequestMessage,
    Response,
)
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Stream as StreamId
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    CallRequest,
    CallResponse,
    CallUpdateRequest,
    CallUpdateResponse,
)

from cogwork.net import session_description
from cogwork.webrtc.host_addresses import host_addresses

CALL = "/proto.rpc.webrtc.v1.SignalingService/Call"
UPDATE = "/proto.rpc.webrtc.v1.SignalingService/CallUpdate"
PACKET_SIZE = 16_373
_MAX_BUFFERED = 1 << 20
_OPEN_TIMEOUT = 20.0


class CallFailed(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class WebRtcClient:
    def __init__(self, ice_servers: Sequence[RTCIceServer] = ()) -> None:
        aioice.ice.get_host_addresses = host_addresses
        self.connection = RTCPeerConnection(RTCConfiguration(iceServers=list(ice_servers)))
        self.data = self.connection.createDataChannel("data", negotiated=True, id=0)
        self.negotiation = self.connection.createDataChannel("negotiation", negotiated=True, id=1)
        self._opened = asyncio.Event()
        self._low = asyncio.Event()
        self._numbers = itertools.count()
        self._calls: dict[int, ClientCall] = {}
        self.data.bufferedAmountLowThreshold = _MAX_BUFFERED // 2
        self.data.on("open", self._opened.set)
        self.data.on("message", self._on_message)
        self.data.on("bufferedamountlow", self._low.set)

    async def connect(
        self, signaling: grpc.aio.Channel, host: str, metadata: Sequence[tuple[str, str]] = ()
    ) -> None:
        await self.connection.setLocalDescription(await self.connection.createOffer())
        sdp = self.connection.localDescription.sdp
        answered = await self.offer(signaling, host, sdp, metadata)
        answer = session_description.decode(answered.init.sdp, "answer")
        await self.connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        # The offer must contain all candidates.
        update: Any = signaling.unary_unary(
            UPDATE,
            request_serializer=CallUpdateRequest.SerializeToString,
            response_deserializer=CallUpdateResponse.FromString,
        )
        request = CallUpdateRequest(uuid=answered.uuid, done=True)
        await update(request, metadata=[("rpc-host", host), *metadata], timeout=_OPEN_TIMEOUT)
        async with asyncio.timeout(_OPEN_TIMEOUT):
            await self._opened.wait()

    @staticmethod
    async def offer(
        signaling: grpc.aio.Channel,
        host: str,
        sdp: str,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> CallResponse:
        """Return the answer to an offer."""
        offer = session_description.encode("offer", sdp)
        call: Any = signaling.unary_stream(
            CALL,
            request_serializer=CallRequest.SerializeToString,
            response_deserializer=CallResponse.FromString,
        )
        replies = call(
            CallRequest(sdp=offer), metadata=[("rpc-host", host), *metadata], timeout=_OPEN_TIMEOUT
        )
        answers: list[CallResponse] = [reply async for reply in replies if reply.HasField("init")]
        return answers[0]

    async def close(self) -> None:
        await self.connection.close()

    async def call(self, path: str, *messages: bytes) -> list[bytes]:
        """Send messages, and return the replies. Raise CallFailed."""
        with self.open(path) as call:
            for number, message in enumerate(messages, 1):
                await call.send(message, end=number == len(messages))
            replies = []
            while (reply := await call.receive()) is not None:
                replies.append(reply)
            return replies

    def open(
        self, path: str, metadata: Iterable[tuple[str, str]] = (), timeout: float | None = None
    ) -> ClientCall:
        """Begin a call. `timeout` is its deadline in seconds."""
        call = ClientCall(self, next(self._numbers))
        self._calls[call.number] = call
        headers = RequestHeaders(method=path)
        for name, value in metadata:
            headers.metadata.md[name].values.append(value)
        if timeout is not None:
            headers.timeout.FromNanoseconds(max(1, int(timeout * 1e9)))
        self.send(Request(stream=call.stream, headers=headers))
        return call

    def forget(self, call: ClientCall) -> None:
        self._calls.pop(call.number, None)

    async def drain(self) -> None:
        """Wait while the buffer of the channel is full."""
        while self.data.bufferedAmount > _MAX_BUFFERED:
            self._low.clear()
            await self._low.wait()

    def send(self, request: Request) -> None:
        self.data.send(request.SerializeToString())

    def _on_message(self, message: bytes) -> None:
        frame = Response.FromString(message)
        call = self._calls.get(frame.stream.id)
        if call is not None:
            call.has_ended = frame.HasField("trailers")
            call.frames.put_nowait(frame)


class ClientCall:
    """A call over the channel, and a context manager that cancels the call if it has not ended."""

    def __init__(self, client: WebRtcClient, number: int) -> None:
        self._client = client
        self.number = number
        self.stream = StreamId(id=number)
        self.frames: asyncio.Queue[Response] = asyncio.Queue()
        self.headers: dict[str, str] | None = None
        self.has_ended = False
        """Whether the last frame has arrived."""
        self._status: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()

    async def send(self, message: bytes, *, end: bool = False) -> None:
        for start in range(0, max(1, len(message)), PACKET_SIZE):
            await self._client.drain()
            is_last = start + PACKET_SIZE >= len(message)
            packet = PacketMessage(data=message[start : start + PACKET_SIZE], eom=is_last)
            body = RequestMessage(has_message=True, packet_message=packet, eos=end and is_last)
            self._client.send(Request(stream=self.stream, message=body))

    def end(self) -> None:
        """Tell the server that no more messages follow."""
        self._client.send(Request(stream=self.stream, message=RequestMessage(eos=True)))

    async def receive_headers(self) -> dict[str, str]:
        """Return the initial metadata, which precedes all messages."""
        while self.headers is None:
            frame = await self.frames.get()
            assert frame.WhichOneof("type") == "headers"
            self.headers = _read_metadata(frame.headers.metadata)
        return self.headers

    async def receive(self) -> bytes | None:
        """Return the next message; None after the last message. Raise CallFailed."""
        await self.receive_headers()
        packets: list[bytes] = []
        while self._status is None:
            frame = await self.frames.get()
            if frame.WhichOneof("type") == "trailers":
                self._status = frame.trailers.status
                self._client.forget(self)
                break
            packets.append(frame.message.packet_message.data)
            if frame.message.packet_message.eom:
                return b"".join(packets)
        if self._status.code:
            raise CallFailed(self._status.code, self._status.message)
        return None

    def cancel(self) -> None:
        self._client.forget(self)
        if self._status is None and self._client.data.readyState == "open":
            self._client.send(Request(stream=self.stream, rst_stream=True))


def _read_metadata(metadata: Metadata) -> dict[str, str]:
    return {name: strings.values[0] for name, strings in metadata.md.items() if strings.values}
