"""Connects to another machine over gRPC, and logs in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import Clock
from cogwork.net.address import TLS_PREFIX, is_loopback_address, parse_address
from cogwork.remotes.errors import (
    CALL_TIMEOUT,
    NotReached,
    RemoteUnavailable,
    describe,
    is_unknown_name,
)
from cogwork.remotes.grpc_connection import GrpcConnection
from cogwork.wire.clients.metadata_channel import Pairs
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_LIST_NAMES: Final = "/viam.robot.v1.RobotService/ResourceNames"
_LOCATION_SECRET: Final = "robot-location-secret"  # noqa: S105 - a type of credentials
_CONNECT_TIMEOUT: Final = 5.0
_ATTEMPT_INTERVAL: Final = 1.0
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    ("grpc.use_local_subchannel_pool", 1),
    # Timeout of an attempt. gRPC keeps the socket of an abandoned attempt until then.
    ("grpc.min_reconnect_backoff_ms", 6_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


class RemoteLogin(NamedTuple):
    entity: str
    type: str
    secret: str


def find_login(config: RemoteConfig) -> RemoteLogin | None:
    if config.auth is not None and config.auth.credentials is not None:
        credentials = config.auth.credentials
        entity = config.auth.entity or config.address
        return RemoteLogin(entity, credentials.type, credentials.payload)
    if config.secret:
        return RemoteLogin(config.address, _LOCATION_SECRET, config.secret)
    return None


class DialTarget(NamedTuple):
    address: str
    """`HOST:PORT`, with the prefix `https://` if TLS is required."""
    login: RemoteLogin | None
    insecure: bool
    """Whether to connect without TLS, if the address allows it."""
    allow_plaintext: bool
    """Whether to send the login even over plaintext, which others on the network can read."""
    certificate_name: str = ""
    """Name in the certificate, if it differs from the address."""

    @property
    def is_encrypted(self) -> bool:
        return not self.insecure or self.address.startswith(TLS_PREFIX)

    @property
    def target(self) -> str:
        return self.address.removeprefix(TLS_PREFIX)

    @property
    def may_send_login(self) -> bool:
        """Whether the login is safe from readers on the network, or the user allows plaintext."""
        return self.is_encrypted or self.allow_plaintext or is_loopback_address(self.target)


async def dial(to: DialTarget, clock: Clock) -> GrpcConnection:
    """Connect and log in. Raise RemoteUnavailable or AioRpcError."""

    async def connect() -> grpc.aio.Channel:
        return await _race(lambda: _open_channel(to), clock)

    channel = await connect()
    try:
        login = await _log_in(channel, to)
        return GrpcConnection(channel, login or (), connect, is_open=login is None)
    except BaseException:
        await channel.close(None)
        raise


async def _race(open_channel: Callable[[], grpc.aio.Channel], clock: Clock) -> grpc.aio.Channel:
    """Return the first channel that connects. Raise RemoteUnavailable.

    Every second, start another attempt. If the network is down, the kernel resends the first packet
    of an attempt only after 1, 3 and 7 seconds, so a new attempt connects earlier once the network
    is back. Old attempts must continue: in a slow network, TCP, TLS and HTTP/2 need several round
    trips.
    """
    attempts: set[asyncio.Task[grpc.aio.Channel]] = set()
    deadline = clock.monotonic() + _CONNECT_TIMEOUT
    try:
        while (left := deadline - clock.monotonic()) > 0:
            attempts.add(asyncio.ensure_future(_attempt(open_channel())))
            await clock.wait(attempts, min(left, _ATTEMPT_INTERVAL))
            for attempt in attempts:
                if attempt.done():
                    attempts.remove(attempt)
                    return attempt.result()
    finally:
        await _abandon(attempts)
    raise NotReached(
        f"it did not answer within {_CONNECT_TIMEOUT:g} s; check the address and the network"
    )


def _open_channel(to: DialTarget) -> grpc.aio.Channel:
    if not to.is_encrypted:
        return grpc.aio.insecure_channel(to.target, _OPTIONS)
    options = [*_OPTIONS, *_name_options(to)]
    return grpc.aio.secure_channel(to.target, tls_credentials(), options)


def _name_options(to: DialTarget) -> list[tuple[str, str]]:
    name = to.certificate_name
    return [("grpc.ssl_target_name_override", name)] if name else []


async def _attempt(channel: grpc.aio.Channel) -> grpc.aio.Channel:
    try:
        await _wait_until_ready(channel)
    except BaseException:
        await channel.close(None)
        raise
    return channel


async def _wait_until_ready(channel: grpc.aio.Channel) -> None:
    state = channel.get_state(try_to_connect=True)
    while state is not grpc.ChannelConnectivity.READY:
        if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
            raise await _find_fault(channel)
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)


async def _find_fault(channel: grpc.aio.Channel) -> RemoteUnavailable:
    """Return why a channel cannot connect. Only a call on the channel reports the reason."""
    method: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        await method(b"", timeout=CALL_TIMEOUT)
    except grpc.aio.AioRpcError as error:
        return (NotReached if is_unknown_name(error) else RemoteUnavailable)(describe(error))
    return RemoteUnavailable("it could not be reached; connecting again")


async def _abandon(attempts: set[asyncio.Task[grpc.aio.Channel]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for result in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(result, grpc.aio.Channel):
            await result.close(None)  # this attempt connected, too, but another one is used


async def _log_in(channel: grpc.aio.Channel, to: DialTarget) -> Pairs | None:
    """Return the metadata that authenticates this machine; None if the other machine requires no
    login although one is configured.

    Raise RemoteUnavailable or AioRpcError.
    """
    login = to.login
    if login is None:
        return ()
    if not to.may_send_login:
        await _require_no_login(channel, to.target)
        return None
    method: Any = channel.unary_unary(
        _AUTHENTICATE,
        request_serializer=AuthenticateRequest.SerializeToString,
        response_deserializer=AuthenticateResponse.FromString,
    )
    credentials = Credentials(type=login.type, payload=login.secret)
    request = AuthenticateRequest(entity=login.entity, credentials=credentials)
    try:
        reply = await method(request, timeout=CALL_TIMEOUT)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return None
        raise
    return (("authorization", f"Bearer {reply.access_token}"),)


async def _require_no_login(channel: grpc.aio.Channel, target: str) -> None:
    """Check without the login that the other machine requires none. Raise RemoteUnavailable."""
    method: Any = channel.unary_unary(_LIST_NAMES)
    try:
        await method(b"", timeout=CALL_TIMEOUT)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAUTHENTICATED:
            raise
        raise RemoteUnavailable(
            f"the login would be sent unencrypted to {target}; remove insecure, or start the "
            "server with -allow-insecure-creds"
        ) from None


def resolve_address(text: str, default_port: int) -> str:
    """Return `HOST:PORT`, with the prefix `https://` if given. Raise RemoteUnavailable."""
    try:
        return parse_address(text, default_port)
    except ValueError as error:
        raise RemoteUnavailable(str(error)) from None
