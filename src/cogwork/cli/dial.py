"""How commands call a running machine over gRPC, and tell what went wrong.

Apart from `reach`, for commands that need no gRPC do not wait for its import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from cogwork.cli.reach import Unreachable
from cogwork.cli.terminal import FAULTS, USAGE, complain
from cogwork.config.diagnose import printable
from cogwork.core.errors import CogworkError
from cogwork.resource import sdk
from cogwork.wire.grpc import OPTIONS

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_TIMEOUT = 10.0
# Whoever waits for a machine to come back sees it soon; by default that takes up to two minutes.
_RECONNECTING = (
    ("grpc.initial_reconnect_backoff_ms", 250),
    ("grpc.max_reconnect_backoff_ms", 500),
)


class Misused(CogworkError):
    """The command names something that is not there."""


def dialed(address: str, run: Callable[[grpc.Channel], int]) -> int:
    """The exit code of `run`, or that of what it could not do, which is told."""
    with grpc.insecure_channel(address, OPTIONS + _RECONNECTING) as channel:
        try:
            return run(channel)
        except Misused as error:
            complain(str(error))
            return USAGE
        except grpc.RpcError as error:
            complain(failure(error, address))
            return USAGE if _is_unreachable(error) else FAULTS


def failure(error: grpc.RpcError, address: str) -> str:
    if _is_unreachable(error):
        return str(Unreachable(address, "connection refused"))
    lines = (error.details() or "").split("\n")
    return f"{error.code().name}: " + "\n".join(map(printable, lines))


def resources_of(channel: grpc.Channel) -> dict[str, common.ResourceName]:
    """By their full names, such as `rdk:component:camera/belt`."""
    listed = ask(
        channel, "ResourceNames", robot.ResourceNamesRequest(), robot.ResourceNamesResponse
    )
    return {f"{r.namespace}:{r.type}:{r.subtype}/{r.name}": r for r in listed.resources}


def ask(channel: grpc.Channel, method: str, request: Any, reply: Any) -> Any:
    """The machine itself."""
    call = channel.unary_unary(
        f"/viam.robot.v1.RobotService/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    return call(request, timeout=_TIMEOUT)


def _is_unreachable(error: grpc.RpcError) -> bool:
    unavailable = error.code() is grpc.StatusCode.UNAVAILABLE
    return unavailable and "failed to connect" in (error.details() or "")
