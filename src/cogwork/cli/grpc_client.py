"""gRPC client of a running machine, for commands.

Separate from `http_client`, so that commands without gRPC do not wait for its import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from cogwork.cli.connection_fault import HANDSHAKE_FAILED, find_connection_fault
from cogwork.cli.http_client import Declined, Unreachable, log_in
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_USAGE, print_error
from cogwork.config.diagnostics import replace_unprintable
from cogwork.core.address import TLS_PREFIX
from cogwork.core.errors import CogworkError
from cogwork.resource import sdk
from cogwork.wire.grpc import GRPC_OPTIONS
from cogwork.wire.tls_credentials import tls_credentials

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_TIMEOUT = 10.0
# Reconnect soon after a machine comes back; the default back-off grows to two minutes.
_RECONNECT_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 500),
)


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


def _open_channel(address: str) -> grpc.Channel:
    options = GRPC_OPTIONS + _RECONNECT_OPTIONS
    if address.startswith(TLS_PREFIX):
        target = address.removeprefix(TLS_PREFIX)
        return grpc.secure_channel(target, tls_credentials(), options)
    return grpc.insecure_channel(address, options)


def login_metadata(address: str) -> tuple[tuple[str, str], ...]:
    """Log in if there is an API key, and return the metadata that calls then need."""
    token = log_in(address)
    return (("authorization", f"Bearer {token}"),) if token is not None else ()


def _authorize(channel: grpc.Channel, address: str) -> grpc.Channel:
    """Return a channel whose calls are logged in, if there is an API key."""
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
    if fault is not None:
        return str(fault)
    lines = (error.details() or "").split("\n")
    return f"{error.code().name}: " + "\n".join(map(replace_unprintable, lines))


def list_resources(channel: grpc.Channel) -> dict[str, common.ResourceName]:
    """Return the resources by full name, such as `rdk:component:camera/belt`."""
    listed = call_robot(
        channel, "ResourceNames", robot.ResourceNamesRequest(), robot.ResourceNamesResponse
    )
    return {f"{r.namespace}:{r.type}:{r.subtype}/{r.name}": r for r in listed.resources}


def call_robot(channel: grpc.Channel, method: str, request: Any, reply: Any) -> Any:
    """Call a method of RobotService."""
    call = channel.unary_unary(
        f"/viam.robot.v1.RobotService/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return call(request, timeout=_TIMEOUT)


def _find_fault(error: grpc.RpcError, address: str) -> Unreachable | None:
    """Return why the machine cannot be reached, or None if it replied."""
    why = find_connection_fault(error, address)
    if why == HANDSHAKE_FAILED:
        why += "; set SSL_CERT_FILE to the authority's certificate"
    return Unreachable(address, why) if why is not None else None
