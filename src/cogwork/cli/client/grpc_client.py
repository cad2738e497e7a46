"""gRPC client of a running machine, for commands.

Separate from `http_client`, so that commands without gRPC do not wait for its import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc

from cogwork.cli.client.connection_fault import HANDSHAKE_FAILED, find_connection_fault
from cogwork.cli.client.http_client import (
    API_KEY_TYPE,
    NOT_A_SERVER,
    Declined,
    NotCogwork,
    Unreachable,
    find_api_key,
    log_in,
)
from cogwork.cli.client.rpc_error_text import describe_rpc_error
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_USAGE, print_error
from cogwork.core.errors import CogworkError
from cogwork.graph.name import REMOTE_SEPARATOR
from cogwork.net.address import TLS_PREFIX
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.clients.tls_credentials import tls_credentials
from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.proto.rpc.v1 import auth_pb2 as auth  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_TIMEOUT = 10.0
# Reconnect soon after a machine comes back; the default back-off grows to two minutes.
_RECONNECT_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 500),
)

_AUTHENTICATE = "/proto.rpc.v1.AuthService/Authenticate"

T = TypeVar("T")


class CommandError(CogworkError):
    """The arguments of the command are invalid or name something that does not exist."""


def with_channel(address: str, run: Callable[[grpc.Channel], int]) -> int:
    """Run a command on a channel, report its errors and return the exit code."""
    with _open_channel(address) as channel:
        try:
            return run(_authorize(channel, address))
        except (CommandError, Declined, Unreachable) as error:
            print_error(str(error))
            return EXIT_USAGE
        except grpc.RpcError as error:
            fault = _find_fault(error, address)
            print_error(_format_fault(error, fault))
            return EXIT_USAGE if fault is not None else EXIT_FAILURE


def ask_machine(address: str, ask: Callable[[grpc.Channel], T]) -> T:
    """Make calls, with a login if an API key is set.

    Raise Unreachable, or Declined with the machine's reply.
    """
    with _open_channel(address) as channel:
        try:
            return ask(_authorize(channel, address))
        except grpc.RpcError as error:
            raise _explain(error, address) from error


def _explain(error: grpc.RpcError, address: str) -> Unreachable | Declined:
    fault = _find_fault(error, address)
    if fault is not None:
        return fault
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return NotCogwork(address, "no reply to a gRPC call")
    return Declined(describe_rpc_error(error))


def _open_channel(address: str) -> grpc.Channel:
    options = GRPC_OPTIONS + _RECONNECT_OPTIONS
    if address.startswith(TLS_PREFIX):
        target = address.removeprefix(TLS_PREFIX)
        return grpc.secure_channel(target, tls_credentials(), options)
    return grpc.insecure_channel(address, options)


def login_metadata(address: str) -> tuple[tuple[str, str], ...]:
    """Log in if an API key is set, and return the metadata for authenticated calls.

    Raise Unreachable, or Declined if the machine rejects the key.
    """
    try:
        token = log_in(address)
    except NotCogwork:
        token = None
    if token is None:
        token = _log_in_over_grpc(address)
    return (("authorization", f"Bearer {token}"),) if token is not None else ()


def _log_in_over_grpc(address: str) -> str | None:
    """Log in to another server. Return None without a key, or if the server requires no login."""
    key = find_api_key(address)
    if key is None:
        return None
    request = auth.AuthenticateRequest(
        entity=key.id, credentials=auth.Credentials(type=API_KEY_TYPE, payload=key.secret)
    )
    with _open_channel(address) as channel:
        try:
            reply = call_method(channel, _AUTHENTICATE, request, auth.AuthenticateResponse)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            raise _explain(error, address) from error
    return str(reply.access_token)


def _authorize(channel: grpc.Channel, address: str) -> grpc.Channel:
    """Return a channel whose calls are authenticated if an API key is set."""
    metadata = login_metadata(address)
    return grpc.intercept_channel(channel, _Authorization(metadata)) if metadata else channel


class _Authorization(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Adds metadata to every call."""

    def __init__(self, metadata: tuple[tuple[str, str], ...]) -> None:
        self._metadata = metadata

    def _intercept(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata = (*(details.metadata or ()), *self._metadata)
        return continuation(details._replace(metadata=metadata), request)

    intercept_unary_unary = _intercept  # type: ignore[assignment]
    intercept_unary_stream = _intercept  # type: ignore[assignment]
    intercept_stream_unary = _intercept  # type: ignore[assignment]
    intercept_stream_stream = _intercept  # type: ignore[assignment]


def format_rpc_error(error: grpc.RpcError, address: str) -> str:
    return _format_fault(error, _find_fault(error, address))


def _format_fault(error: grpc.RpcError, fault: Unreachable | None) -> str:
    return str(fault) if fault is not None else describe_rpc_error(error)


def list_resources(channel: grpc.Channel) -> dict[str, common.ResourceName]:
    """Return the resources by full name, such as `rdk:component:camera/belt`."""
    listed = call_robot(
        channel, "ResourceNames", robot.ResourceNamesRequest(), robot.ResourceNamesResponse
    )
    return {f"{r.namespace}:{r.type}:{r.subtype}/{r.name}": r for r in listed.resources}


def match_name(resources: Mapping[str, common.ResourceName], wanted: str) -> list[str]:
    """Return the full names of the resources with this full or short name.

    The short name may omit the remote, unless a resource of the machine itself has it.
    """
    return [full for full, r in resources.items() if wanted in (full, r.name)] or [
        full for full, r in resources.items() if wanted == r.name.rpartition(REMOTE_SEPARATOR)[2]
    ]


def call_robot(channel: grpc.Channel, method: str, request: Any, reply: Any) -> Any:
    """Call a method of RobotService."""
    return call_method(channel, f"/viam.robot.v1.RobotService/{method}", request, reply)


def call_method(channel: grpc.Channel, path: str, request: Any, reply: Any) -> Any:
    call = channel.unary_unary(
        path,
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return call(request, timeout=_TIMEOUT)


def _find_fault(error: grpc.RpcError, address: str) -> Unreachable | None:
    """Return the reason why the machine cannot be reached, or None if it replied."""
    why = find_connection_fault(error, address)
    if why == HANDSHAKE_FAILED:
        why += "; set SSL_CERT_FILE to the authority's certificate"
    if why is None:
        return None
    return (NotCogwork if why == NOT_A_SERVER else Unreachable)(address, why)
