"""Connects to another machine, and logs in to it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import grpc
import grpc.aio
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse, Credentials

from cogwork.config.schema import RemoteConfig
from cogwork.core.address import TLS_PREFIX, is_loopback, parse_address
from cogwork.remotes.errors import RemoteUnavailable
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


def open_channel(config: RemoteConfig, *, allow_plaintext: bool) -> grpc.aio.Channel:
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


async def log_in(channel: grpc.aio.Channel, login: RemoteLogin | None, timeout: float) -> Pairs:
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
    reply = await method(request, timeout=timeout)
    return (("authorization", f"Bearer {reply.access_token}"),)
