"""Connects to another machine, and logs in to it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

from cogwork.config.schema import RemoteConfig
from cogwork.core.address import TLS_PREFIX, is_loopback, parse_address
from cogwork.core.clock import Clock
from cogwork.remotes.errors import CALL_TIMEOUT, RemoteUnavailable, describe
from cogwork.wire.grpc import MAX_MESSAGE_SIZE
from cogwork.wire.metadata_channel import Pairs
from cogwork.wire.tls_credentials import tls_credentials

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_LOCATION_SECRET: Final = "robot-location-secret"  # noqa: S105 - a type of credentials
_DEFAULT_PORT: Final = 8080
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    ("grpc.use_local_subchannel_pool", 1),
    # How long an attempt may take. gRPC keeps the socket of an abandoned one for the rest of it.
    ("grpc.min_reconnect_backoff_ms", 6_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_CONNECT_TIMEOUT: Final = 5.0
_ATTEMPT_INTERVAL: Final = 1.0


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


@contextlib.asynccontextmanager
async def connect(
    config: RemoteConfig, clock: Clock, *, allow_plaintext: bool
) -> AsyncIterator[grpc.aio.Channel]:
    """Yield a connected channel. Raise RemoteUnavailable."""
    channel = await _race_attempts(config, clock, allow_plaintext=allow_plaintext)
    try:
        yield channel
    finally:
        await channel.close(None)


async def _race_attempts(
    config: RemoteConfig, clock: Clock, *, allow_plaintext: bool
) -> grpc.aio.Channel:
    """Start an attempt to connect every second, and return the first channel that is connected.

    The first packet of an attempt is lost while the network is away, and the kernel sends it again
    after 1, 3 and 7 seconds, so an old attempt notices late that the network is back. Shorter
    attempts would never succeed in a slow network, where TCP, TLS and HTTP/2 take several round
    trips.
    """
    attempts: set[asyncio.Task[grpc.aio.Channel]] = set()
    deadline = clock.monotonic() + _CONNECT_TIMEOUT
    try:
        while (left := deadline - clock.monotonic()) > 0:
            channel = _open_channel(config, allow_plaintext=allow_plaintext)
            attempts.add(asyncio.ensure_future(_attempt(channel)))
            await clock.wait(attempts, min(left, _ATTEMPT_INTERVAL))
            for attempt in attempts:
                if attempt.done():
                    attempts.remove(attempt)
                    return attempt.result()
    finally:
        await _abandon(attempts)
    raise RemoteUnavailable(
        f"it did not answer within {_CONNECT_TIMEOUT:g} s; check the address and the network"
    )


def _open_channel(config: RemoteConfig, *, allow_plaintext: bool) -> grpc.aio.Channel:
    """Raise RemoteUnavailable if the address is none, or others could read the login."""
    try:
        target = parse_address(config.address, _DEFAULT_PORT)
    except ValueError as error:
        raise RemoteUnavailable(str(error)) from None
    is_encrypted = not config.insecure or target.startswith(TLS_PREFIX)
    target = target.removeprefix(TLS_PREFIX)
    if is_encrypted:
        return grpc.aio.secure_channel(target, tls_credentials(), _OPTIONS)
    host = target.rpartition(":")[0]
    if find_login(config) is not None and not is_loopback(host) and not allow_plaintext:
        raise RemoteUnavailable(
            f"the login would travel unencrypted to {target}; remove insecure, or start the "
            "server with -allow-insecure-creds"
        )
    return grpc.aio.insecure_channel(target, _OPTIONS)


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
            raise RemoteUnavailable(await _find_reason(channel))
        await channel.wait_for_state_change(state)
        state = channel.get_state(try_to_connect=True)


async def _find_reason(channel: grpc.aio.Channel) -> str:
    """Return why a channel cannot connect: only a call tells."""
    method: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        await method(b"", timeout=CALL_TIMEOUT)
    except grpc.aio.AioRpcError as error:
        return describe(error)
    return "it could not be reached; connecting again"


async def _abandon(attempts: set[asyncio.Task[grpc.aio.Channel]]) -> None:
    for attempt in attempts:
        attempt.cancel()
    for result in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(result, grpc.aio.Channel):
            await result.close(None)  # was ready at the same moment as the one that is used


async def log_in(channel: grpc.aio.Channel, login: RemoteLogin | None) -> Pairs:
    """Return the metadata that identifies this machine. Raise AioRpcError."""
    if login is None:
        return ()
    method: Any = channel.unary_unary(
        _AUTHENTICATE,
        request_serializer=AuthenticateRequest.SerializeToString,
        response_deserializer=AuthenticateResponse.FromString,
    )
    credentials = Credentials(type=login.type, payload=login.secret)
    request = AuthenticateRequest(entity=login.entity, credentials=credentials)
    reply = await method(request, timeout=CALL_TIMEOUT)
    return (("authorization", f"Bearer {reply.access_token}"),)
