"""Connects to another machine over WebRTC, through the signaling server of its cloud."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

import grpc
import grpc.aio
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb

from cogwork.core.errors import CogworkError
from cogwork.net import session_description
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.errors import CALL_TIMEOUT, RemoteUnavailable
from cogwork.wire.clients.data_channel_client import DataChannelClient
from cogwork.wire.clients.metadata_channel import Pairs
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.webrtc_peers import NoConnection

_SIGNALING: Final = "/proto.rpc.webrtc.v1.SignalingService/"
_OPEN_TIMEOUT: Final = 20.0
_SEND_BUFFER: Final = 32 * 1024
"""Maximum bytes of requests in the socket's buffer, because heartbeats wait behind them."""
_HOST_KEY: Final = "rpc-host"


class DialingProcess(Protocol):
    """A process that holds WebRTC connections."""

    async def dial(
        self, peer_id: str, ice_servers: Sequence[IceServer], server: socket.socket
    ) -> str:
        """Return an offer for another machine, and exchange the messages of the connection over the
        socket.

        Raise CogworkError.
        """

    async def accept(self, peer_id: str, answer: str) -> None:
        """Apply the answer, and wait until the data channel is open.

        Raise NoConnection if the machines cannot reach each other, or another CogworkError.
        """

    def add_candidate(self, peer_id: str, text: str, mid: str | None, index: int | None) -> None:
        """Add a candidate of the machine. The text is empty after the last candidate."""


class WebRtcConnection:
    """A WebRTC connection. The login of its signaling connection also applies to its calls."""

    login: Pairs = ()

    def __init__(self, calls: DataChannelClient) -> None:
        self.control = self.calls = calls

    async def wait_until_lost(self) -> None:
        await asyncio.shield(self.calls.lost)

    async def renew(self) -> None:
        """Do nothing: calls share the connection in small packets, and ICE finds a new path by
        itself."""

    async def aclose(self) -> None:
        self.calls.close()
        await asyncio.shield(self.calls.lost)


async def call_machine(
    host: str, signaling: RemoteConnection, process: DialingProcess
) -> WebRtcConnection:
    """Connect to the machine with this name. Raise RemoteUnavailable or AioRpcError."""
    caller = _Caller(host, signaling, process)
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
    ours.setblocking(False)
    with theirs, contextlib.ExitStack() as stack:
        stack.callback(ours.close)
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT):
                await caller.connect(theirs)
        except TimeoutError:
            raise RemoteUnavailable(f"{host} did not connect within {_OPEN_TIMEOUT:g} s") from None
        except NoConnection as error:
            raise RemoteUnavailable(
                f"no WebRTC connection to {host}: {error}; allow UDP between the two, or add a "
                "TURN server to the cloud"
            ) from None
        except RemoteUnavailable:
            raise
        except CogworkError as error:
            raise RemoteUnavailable(f"no WebRTC connection to {host}: {error}") from None
        loop = asyncio.get_running_loop()
        _, calls = await loop.create_connection(DataChannelClient, sock=ours)
        stack.pop_all()
    return WebRtcConnection(calls)


class _Caller:
    """A single attempt to connect to a machine by its name."""

    def __init__(self, host: str, signaling: RemoteConnection, process: DialingProcess) -> None:
        self._host = host
        self._channel = signaling.control
        self._metadata = ((_HOST_KEY, host), *signaling.login)
        self._process = process
        self._peer_id = str(uuid.uuid4())

    async def connect(self, server: socket.socket) -> None:
        """Connect, and return when the data channel is open. The channel's messages pass through
        the socket."""
        offer = await self._process.dial(self._peer_id, await self._list_ice_servers(), server)
        opening: asyncio.Task[None] | None = None
        try:
            async for reply in self._call(offer):
                if reply.HasField("init") and opening is None:
                    opening = asyncio.ensure_future(self._open(reply))
                elif reply.HasField("update"):
                    self._add_candidate(reply.update.candidate)
            if opening is None:
                raise RemoteUnavailable(f"{self._host} did not answer the call; trying again")
            await opening
        finally:
            if opening is not None:
                opening.cancel()
                await asyncio.gather(opening, return_exceptions=True)

    async def _list_ice_servers(self) -> list[IceServer]:
        request = pb.OptionalWebRTCConfigRequest()
        parse = pb.OptionalWebRTCConfigResponse.FromString
        try:
            reply = await self._unary("OptionalWebRTCConfig", request, parse)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            return []
        return [
            IceServer(tuple(each.urls), each.username, each.credential)
            for each in reply.config.additional_ice_servers
        ]

    async def _call(self, offer: str) -> AsyncIterator[pb.CallResponse]:
        method: Any = self._channel.unary_stream(
            f"{_SIGNALING}Call",
            request_serializer=pb.CallRequest.SerializeToString,
            response_deserializer=pb.CallResponse.FromString,
        )
        request = pb.CallRequest(sdp=session_description.encode("offer", offer))
        call = method(request, timeout=_OPEN_TIMEOUT, metadata=self._metadata)
        try:
            async for reply in call:
                yield reply
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise
            raise RemoteUnavailable(
                "the server in managed_by has no signaling; remove managed_by to connect "
                "directly to the address of the machine"
            ) from None
        finally:
            call.cancel()

    async def _open(self, reply: pb.CallResponse) -> None:
        try:
            answer = session_description.decode(reply.init.sdp, "answer")
        except ValueError as error:
            raise RemoteUnavailable(f"{self._host} sent an invalid answer: {error}") from None
        # Ignore the failure: the offer contains all candidates, so the machine needs no further
        # candidates.
        with contextlib.suppress(grpc.aio.AioRpcError):
            done = pb.CallUpdateRequest(uuid=reply.uuid, done=True)
            await self._unary("CallUpdate", done, pb.CallUpdateResponse.FromString)
        await self._process.accept(self._peer_id, answer)

    def _add_candidate(self, given: pb.ICECandidate) -> None:
        self._process.add_candidate(
            self._peer_id,
            given.candidate,
            given.sdp_mid if given.HasField("sdp_mid") else None,
            given.sdpm_line_index if given.HasField("sdpm_line_index") else None,
        )

    async def _unary(self, method: str, request: Any, parse: Any) -> Any:
        start: Any = self._channel.unary_unary(
            _SIGNALING + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=parse,
        )
        return await start(request, timeout=CALL_TIMEOUT, metadata=self._metadata)
