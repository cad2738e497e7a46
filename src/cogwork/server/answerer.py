"""Answers WebRTC offers of clients that a signaling server relays.

The machine keeps streams open to the signaling server, so that clients can reach it behind a
router. Once a client is connected, its messages do not pass through the signaling server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import grpc
import grpc.aio
from viam.gen.proto.rpc.v1.auth_pb2 import (
    AuthenticateRequest,
    AuthenticateResponse,
    Credentials,
)
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    AnswerRequest,
    AnswerRequestInitStage,
    AnswerResponse,
    AnswerResponseDoneStage,
    AnswerResponseErrorStage,
    AnswerResponseInitStage,
    ICECandidate,
)

from cogwork.auth.roles import Role
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.fair_places import Holder
from cogwork.net.peer import Peer
from cogwork.robot.middleware.authentication import AdmittedClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.table.status import status_of
from cogwork.wire.transports.grpc_options import CLOUD_KEEPALIVE
from cogwork.wire.transports.ice_servers import IceServer
from cogwork.wire.transports.webrtc_peers import MAX_PEERS, WebRtcPeers

_ANSWERERS = 2
"""Number of open streams that wait for offers. When a stream gets an offer, another stream is
opened. A client that does not complete its offer therefore does not delay the next client."""
_MAX_OFFERS = 2 * MAX_PEERS
"""Maximum offers that are answered at the same time. The limit on peers is lower, and is shared
fairly among clients, so the offers of one client do not block other clients."""
_CONNECT_TIMEOUT = 10.0
_SILENCE_TIMEOUT = 50.0
"""Timeout in seconds without a message. The server sends a heartbeat every 15 seconds."""
_MIN_DEADLINE = 5.0
_DEFAULT_DEADLINE = 10.0
"""Default timeout in seconds from an offer to the client's last candidate."""
_RETRY = RetryPolicy(first=1.0, maximum=60.0)
_ANSWER = "/proto.rpc.webrtc.v1.SignalingService/Answer"
_AUTHENTICATE = "/proto.rpc.v1.AuthService/Authenticate"

_log = logging.getLogger("rdk.networking")


class SignalingSettings(NamedTuple):
    address: str
    hosts: tuple[str, ...]
    """The names of this machine at the signaling server."""
    is_plaintext: bool = False
    login: CloudLogin | None = None


Admit = Callable[[Peer, Callable[[], None]], Awaitable[AdmittedClient]]
"""A function that checks whether a client may connect, and raises Unauthenticated if not. It calls
the given function when the client loses its access."""


class Answerer:
    def __init__(
        self, settings: SignalingSettings, peers: WebRtcPeers, admit: Admit, clock: Clock
    ) -> None:
        self._settings = settings
        self._peers = peers
        self._admit = admit
        self._clock = clock
        self._open: set[str] = set()
        """Peers that this answerer has opened."""
        self._free = asyncio.Semaphore(_MAX_OFFERS)
        self._was_reachable: bool | None = None

    async def run(self) -> None:
        """Answer offers until cancelled. Then disconnect the clients."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_ANSWERERS):
                    group.create_task(self._answer_forever())
        finally:
            for peer_id in tuple(self._open):
                self._peers.close(peer_id)

    async def _answer_forever(self) -> None:
        backoff = Backoff(_RETRY)
        while True:
            has_answered = False
            try:
                has_answered = await self._answer_on_connection()
            except Exception as error:
                self._report_unreachable(error)
            if has_answered:
                backoff.reset()
            await self._clock.sleep(backoff.next_delay())

    async def _answer_on_connection(self) -> bool:
        """Answer offers until the connection fails. Return whether there was any offer."""
        has_answered = False
        async with self._connect() as channel, asyncio.TaskGroup() as serving:
            try:
                metadata = await self._log_in(channel)
                while (offered := await self._wait_for_offer(channel, metadata)) is not None:
                    has_answered = True
                    await self._free.acquire()
                    serving.create_task(self._serve_stream(*offered))
            except Exception as error:
                # gRPC raises many types of errors when a stream ends. Other streams may continue;
                # they are completed before the connection is closed.
                self._report_unreachable(error)
        return has_answered

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[grpc.aio.Channel]:
        settings = self._settings
        options = (*CLOUD_KEEPALIVE.options, ("grpc.use_local_subchannel_pool", 1))
        channel = (
            grpc.aio.insecure_channel(settings.address, options)
            if settings.is_plaintext
            else grpc.aio.secure_channel(settings.address, tls_credentials(), options)
        )
        async with channel:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                await channel.channel_ready()
            yield channel

    async def _log_in(self, channel: grpc.aio.Channel) -> list[tuple[str, str]]:
        """Log in, and return the metadata for the Answer call."""
        metadata = [("rpc-host", host) for host in self._settings.hosts]
        metadata.append(("heartbeats-allowed", "true"))
        login = self._settings.login
        if login is None:
            return metadata
        authenticate: Any = channel.unary_unary(
            _AUTHENTICATE,
            request_serializer=AuthenticateRequest.SerializeToString,
            response_deserializer=AuthenticateResponse.FromString,
        )
        credentials = Credentials(type=login.type, payload=login.secret)
        request = AuthenticateRequest(entity=login.entity, credentials=credentials)
        reply = await authenticate(request, timeout=_CONNECT_TIMEOUT)
        return [*metadata, ("authorization", f"Bearer {reply.access_token}")]

    async def _wait_for_offer(
        self, channel: grpc.aio.Channel, metadata: list[tuple[str, str]]
    ) -> tuple[Any, AnswerRequest] | None:
        """Return a stream and its first offer; None if the stream ended without an offer."""
        answer: Any = channel.stream_stream(
            _ANSWER,
            request_serializer=AnswerResponse.SerializeToString,
            response_deserializer=AnswerRequest.FromString,
        )
        stream = answer(metadata=metadata)
        try:
            first = await self._read_first(stream)
        except BaseException:
            stream.cancel()
            raise
        if first is not None and first.WhichOneof("stage") == "init":
            return stream, first
        stream.cancel()
        return None

    async def _read_first(self, stream: Any) -> AnswerRequest | None:
        """Return the first message that is not a heartbeat; None if the stream has ended."""
        while True:
            async with asyncio.timeout(_SILENCE_TIMEOUT):
                message = await _read(stream)
            self._report_reachable()
            if message is None or message.WhichOneof("stage") != "heartbeat":
                return message

    async def _serve_stream(self, stream: Any, request: AnswerRequest) -> None:
        try:
            await self._serve(stream, request.uuid, request.init)
        except Exception as error:
            _log.debug("could not answer a client of the signaling server: %s", error)
        finally:
            stream.cancel()
            self._free.release()

    async def _serve(self, stream: Any, call_id: str, offer: AnswerRequestInitStage) -> None:
        try:
            peer_id, answer = await self._open_peer(offer)
        except Exception as error:
            status, message = status_of(error, _ANSWER)
            stage = AnswerResponseErrorStage()
            stage.status.code, stage.status.message = status.value, message
            await stream.write(AnswerResponse(uuid=call_id, error=stage))
            return
        self._open.add(peer_id)
        self._peers.on_end(peer_id, lambda: self._open.discard(peer_id))
        self._peers.on_end(peer_id, stream.cancel)
        # The answer contains all candidates, so no further ones follow.
        await stream.write(AnswerResponse(uuid=call_id, init=AnswerResponseInitStage(sdp=answer)))
        await stream.write(AnswerResponse(uuid=call_id, done=AnswerResponseDoneStage()))
        with contextlib.suppress(TimeoutError, InvalidRequest):
            # The client may disconnect, or complete the connection, before its last candidate
            # arrives.
            async with asyncio.timeout(_seconds_until(offer)):
                await self._receive_candidates(stream, peer_id)

    async def _open_peer(self, offer: AnswerRequestInitStage) -> tuple[str, str]:
        """Return the ID of a new peer, and the answer to its offer."""
        client, lost_access = _client_of(offer), asyncio.Event()
        opened: str | None = None

        def end() -> None:
            lost_access.set()
            if opened is not None:
                self._peers.close(opened)

        identity, release = await self._admit(client, end)
        # Do not use the role that the signaling server has sent: the access list may contain
        # another.
        role = identity.role if identity is not None else Role.OWNER
        caller = Holder(client.introduced_as, role)
        try:
            opened, answer = await self._peers.answer(
                offer.sdp, client, caller, {}, _ice_servers(offer)
            )
        except BaseException:
            release()
            raise
        self._peers.on_end(opened, release)
        if lost_access.is_set():
            self._peers.close(opened)
        return opened, answer

    async def _receive_candidates(self, stream: Any, peer_id: str) -> None:
        while (message := await _read(stream)) is not None:
            match message.WhichOneof("stage"):
                case "update":
                    self._peers.add_candidate(peer_id, message.update.candidate)
                case "done":
                    self._peers.add_candidate(peer_id, ICECandidate())
                    return
                case "error":
                    self._peers.close(peer_id)
                    return

    def _report_reachable(self) -> None:
        if not self._was_reachable:
            _log.info("waiting for clients at the signaling server %s", self._settings.address)
        self._was_reachable = True

    def _report_unreachable(self, error: Exception) -> None:
        """Log the first failure since the signaling server was reachable."""
        if self._was_reachable is False:
            return
        self._was_reachable = False
        reason = (
            f"{error.code().name}: {error.details()}"
            if isinstance(error, grpc.aio.AioRpcError)
            else str(error) or "it does not respond"
        )
        _log.warning(
            "cannot wait for clients at the signaling server %s: %s; retrying",
            *(self._settings.address, reason),
        )


async def _read(stream: Any) -> AnswerRequest | None:
    """Return the next message; None if the stream has ended."""
    message: Any = await stream.read()
    return None if message is grpc.aio.EOF else message


def _client_of(offer: AnswerRequestInitStage) -> Peer:
    """Return the client, whom the signaling server has authenticated."""
    return Peer(
        "webrtc:signaling:0",
        is_encrypted=True,
        introduced_as=offer.caller_auth_entity or "unknown",
        introduction=dict(offer.caller_auth_metadata),
    )


def _ice_servers(offer: AnswerRequestInitStage) -> list[IceServer]:
    servers = offer.optional_config.additional_ice_servers
    return [IceServer(tuple(each.urls), each.username, each.credential) for each in servers]


def _seconds_until(offer: AnswerRequestInitStage) -> float:
    if not offer.HasField("deadline"):
        return _DEFAULT_DEADLINE
    return max(_MIN_DEADLINE, offer.deadline.ToMicroseconds() / 1e6 - time.time())
