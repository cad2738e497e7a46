"""The status of another server over gRPC, in the form of `/status.json`.

Unknown data is left out, so that programs can distinguish it from empty data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import grpc

from cogwork.cli.client.another_make import UNKNOWN
from cogwork.cli.client.grpc_client import ask_machine, call_robot, list_resources
from cogwork.cli.client.http_client import Declined, NotCogwork
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.timestamp_pb2 import Timestamp  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

_REACHABILITY = {
    robot.ResourceStatus.REACHABILITY_REMOTE_DISCONNECTED: "its remote is not connected",
    robot.ResourceStatus.REACHABILITY_SHADOWED_BY_LOCAL: "a local resource has the same name",
    robot.ResourceStatus.REACHABILITY_AMBIGUOUS_REMOTE: "several remotes have this name",
}

T = TypeVar("T")


def fetch_grpc_status(address: str, over_http: NotCogwork) -> dict[str, Any]:
    """Return the status. Raise Unreachable or Declined.

    `over_http` is the error of the attempt over HTTP.
    """
    return _ask(address, over_http, _read_status)


def find_cloud_part(address: str, over_http: NotCogwork) -> str | None:
    """Return the ID of the machine in its cloud; None if it has not joined one.

    Raise Unreachable or Declined.
    """

    def read(channel: grpc.Channel) -> str | None:
        _read_version(channel)  # raises an error if the server is not a machine
        try:
            found = call_robot(
                channel,
                "GetCloudMetadata",
                robot.GetCloudMetadataRequest(),
                robot.GetCloudMetadataResponse,
            )
        except grpc.RpcError:
            return None
        return found.machine_part_id or None

    return _ask(address, over_http, read)


def _ask(address: str, over_http: NotCogwork, ask: Callable[[grpc.Channel], T]) -> T:
    try:
        return ask_machine(address, ask)
    except NotCogwork:
        # The server supports neither protocol. Report the error of the HTTP request, which is more
        # helpful.
        raise over_http from None


def _read_status(channel: grpc.Channel) -> dict[str, Any]:
    version = _read_version(channel)
    found = _call_if_served(
        channel, "GetMachineStatus", robot.GetMachineStatusRequest(), robot.GetMachineStatusResponse
    )
    view = _list_names(channel) if found is None else _to_view(found)
    return {"version": version, **view}


def _read_version(channel: grpc.Channel) -> dict[str, str] | None:
    found = _call_if_served(
        channel, "GetVersion", robot.GetVersionRequest(), robot.GetVersionResponse
    )
    if found is None:
        return None
    return {
        "platform": found.platform,
        "version": found.version,
        "api_version": found.api_version,
    }


def _call_if_served(channel: grpc.Channel, method: str, request: Any, reply: Any) -> Any:
    try:
        return call_robot(channel, method, request, reply)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return None
        raise


def _list_names(channel: grpc.Channel) -> dict[str, Any]:
    """Return the status of a server that only lists its resources."""
    try:
        names = list_resources(channel)
    except grpc.RpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            raise Declined(
                "the server at this address speaks gRPC, but is not a machine"
            ) from error
        raise
    return {
        "state": UNKNOWN,
        "resources": [{"name": name, "state": UNKNOWN, "reason": None} for name in sorted(names)],
    }


def _to_view(status: Any) -> dict[str, Any]:
    return {
        "state": _state_name(robot.GetMachineStatusResponse.State, status.state),
        "revision": status.config.revision,
        "applied_at": _read_time(status.config, "last_updated"),
        "resources": [_to_resource(each) for each in status.resources],
        "modules": [_to_module(each) for each in status.modules],
        "packages": [_to_package(each) for each in status.packages],
        "jobs": [_to_job(each) for each in status.job_statuses],
    }


def _to_resource(status: Any) -> dict[str, Any]:
    name = status.name
    return {
        "name": f"{name.namespace}:{name.type}:{name.subtype}/{name.name}",
        "state": _state_name(robot.ResourceStatus.State, status.state),
        "reason": status.error or _REACHABILITY.get(status.reachability),
        "since": _read_time(status, "last_updated"),
        "revision": status.revision,
    }


def _to_module(status: Any) -> dict[str, Any]:
    return {
        "name": status.module_name,
        "state": _state_name(robot.ModuleStatus.State, status.state),
        "reason": status.error or None,
        "since": _read_time(status, "last_updated"),
        "failures": status.consecutive_failures,
    }


def _to_package(status: Any) -> dict[str, Any]:
    return {
        "name": status.name,
        "version": status.version,
        "state": _state_name(robot.PackageStatus.State, status.state),
        "since": _read_time(status, "last_updated"),
        "reason": status.error,
        "done": status.bytes_downloaded,
        "total": status.total_bytes or None,
    }


def _to_job(status: Any) -> dict[str, Any]:
    return {
        "name": status.job_name,
        "configured": True,
        "successes": _to_seconds(status.recent_successful_runs),
        "failures": [
            {"time": each, "reason": None} for each in _to_seconds(status.recent_failed_runs)
        ],
    }


def _state_name(states: Any, number: int) -> str:
    """Convert a state: `STATE_READY` becomes `ready`."""
    name = states.Name(number) if number in states.values() else ""
    return name.removeprefix("STATE_").lower().replace("unspecified", "") or UNKNOWN


def _read_time(message: Any, field: str) -> float | None:
    return _to_seconds([getattr(message, field)])[0] if message.HasField(field) else None


def _to_seconds(times: Iterable[Timestamp]) -> list[float]:
    return [each.ToMicroseconds() / 1e6 for each in times]
