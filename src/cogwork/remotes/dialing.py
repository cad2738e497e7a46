"""Connects to another machine over gRPC, and logs in to it."""

from __future__ import annotations

import asyncio
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

from cogwork.config.schema import RemoteConfig
from cogwork.core.address import TLS_PREFIX, is_loopback, parse_address
from cogwork.remotes.connection import CALL_TIMEOUT, describe
from cogwork.remotes.errors import RemoteUnavailable
from cogwork.wire.grpc import MAX_MESSAGE_SIZE
from cogwork.wire.metadata_channel import Pairs
from cogwork.wire.tls_credentials import tls_credentials

_AUTHENTICATE: Final = "/proto.rpc.v1.AuthService/Authenticate"
_LOCATION_SECRET: Final = "robot-location-secret"  # noqa: S105 - a type of credentials
_CONNECT_TIMEOUT: Final = 5.0
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_SIZE),
    ("grpc.max_send_message_length", MAX_MESSAGE_SIZE),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
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


class GrpcConnection:
    """A connection over gRPC."""

    def __init__(self, channel: grpc.aio.Channel, login: Pairs) -> None:
        self.calls = channel
        self.login = login

    async def wait_until_lost(self) -> None:
        state = self.calls.get_state()
        while state is grpc.ChannelConnectivity.READY:
            await self.calls.wait_for_state_change(state)
            state = self.calls.get_state()

    async def aclose(self) -> None:
        await self.calls.close(None)


async def dial(
    address: str, login: RemoteLogin | None, *, insecure: bool, allow_plaintext: bool
) -> GrpcConnection:
    """Connect to `HOST:PORT`, and log in.

    `insecure`: without TLS, unless the address begins with `https://`. `allow_plaintext`: even if
    others can read the login. Raise RemoteUnavailable or AioRpcError.
    """
    channel = _open_channel(address, login, insecure=insecure, allow_plaintext=allow_plaintext)
    try:
        await _wait_until_ready(channel)
        return GrpcConnection(channel, await _log_in(channel, login))
    except BaseException:
        await channel.close(None)
        raise


def _open_channel(
    address: str, login: RemoteLogin | None, *, insecure: bool, allow_plaintext: bool
) -> grpc.aio.Channel:
    is_encrypted = not insecure or address.startswith(TLS_PREFIX)
    target = address.removeprefix(TLS_PREFIX)
    if is_encrypted:
        return grpc.aio.secure_channel(target, tls_credentials(), _OPTIONS)
    host = target.rpartition(":")[0]
    if login is not None and not is_loopback(host) and not allow_plaintext:
        raise RemoteUnavailable(
            f"the login would travel unencrypted to {target}; remove insecure, or start the "
            "server with -allow-insecure-creds"
        )
    return grpc.aio.insecure_channel(target, _OPTIONS)


async def _wait_until_ready(channel: grpc.aio.Channel) -> None:
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            state = channel.get_state(try_to_connect=True)
            while state is not grpc.ChannelConnectivity.READY:
                if state is grpc.ChannelConnectivity.TRANSIENT_FAILURE:
                    raise RemoteUnavailable(await _find_reason(channel))
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
    except TimeoutError:
        raise RemoteUnavailable(
            f"it did not answer within {_CONNECT_TIMEOUT:g} s; check the address and the network"
        ) from None


async def _find_reason(channel: grpc.aio.Channel) -> str:
    """Return why a channel cannot connect: only a call tells."""
    method: Any = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        await method(b"", timeout=CALL_TIMEOUT)
    except grpc.aio.AioRpcError as error:
        return describe(error)
    return "it could not be reached; connecting again"


async def _log_in(channel: grpc.aio.Channel, login: RemoteLogin | None) -> Pairs:
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


def resolve_address(text: str, default_port: int) -> str:
    """Return `HOST:PORT`, with `https://` in front if given. Raise RemoteUnavailable."""
    try:
        return parse_address(text, default_port)
    except ValueError as error:
        raise RemoteUnavailable(str(error)) from None
