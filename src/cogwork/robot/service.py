"""RobotService: what the machine as a whole answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.version_metadata import API_VERSION

from cogwork import __version__
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.node import Node
from cogwork.resource.structs import to_dict
from cogwork.robot.health import health_of
from cogwork.robot.machine import Machine
from cogwork.robot.operations import Cancelled, Operation
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = robot.DESCRIPTOR.services_by_name["RobotService"]
_LATER = {
    "sessions": ("GetSessions", "StartSession", "SendSessionHeartbeat"),
    "modules": ("GetModelsFromModules", "RestartModule"),
    "tunnels": ("Tunnel", "ListTunnels"),
    "frames of reference": ("FrameSystemConfig", "GetPose", "TransformPose", "TransformPCD"),
    "traces": ("SendTraces",),
    "uploads": ("UploadDataFromPath",),
}
_REFUSALS = {
    **{
        name: f"{name} is not served: {subject} are not part of this release yet"
        for subject, names in _LATER.items()
        for name in names
    },
    **{
        name: f"{name} was withdrawn from the public API; use GetMachineStatus"
        for name in ("GetStatus", "StreamStatus")
    },
}
_LARGEST_SHOWN = 4096
_LONGEST_ARGUMENT = 200
_END_OF_TIME = 253402300800
"""Seconds until the year 10000, which no calendar has."""

_log = logging.getLogger("rdk")


class NotInTheCloud(CogworkError):
    status = "FAILED_PRECONDITION"


def robot_methods(
    machine: Machine, services: Mapping[Api, str], shut_down: Callable[[str], None]
) -> Iterable[Method]:
    """The services are those that carry the APIs."""
    answers = RobotService(machine, services, shut_down).answers()
    return described_methods(_DESCRIPTOR, answers, _REFUSALS)


class RobotService:
    def __init__(
        self, machine: Machine, services: Mapping[Api, str], shut_down: Callable[[str], None]
    ) -> None:
        self._machine = machine
        self._services = services
        self._shut_down = shut_down

    def answers(self) -> Mapping[str, Answer]:
        return {
            "ResourceNames": self.resource_names,
            "ResourceRPCSubtypes": self.resource_rpc_subtypes,
            "GetMachineStatus": self.get_machine_status,
            "GetVersion": self.get_version,
            "GetCloudMetadata": self.get_cloud_metadata,
            "StopAll": self.stop_all,
            "Shutdown": self.shutdown,
            "Log": self.log,
            "GetOperations": self.get_operations,
            "CancelOperation": self.cancel_operation,
            "BlockForOperation": self.block_for_operation,
        }

    async def resource_names(self, *_: object) -> robot.ResourceNamesResponse:
        """Awaits nothing: a client drops a machine that takes a second for this."""
        names = [_name(name) for name in self._machine.nodes if name.api in self._services]
        return robot.ResourceNamesResponse(resources=names)

    async def resource_rpc_subtypes(self, *_: object) -> robot.ResourceRPCSubtypesResponse:
        apis = dict.fromkeys(name.api for name in self._machine.nodes)
        subtypes = [
            robot.ResourceRPCSubtype(
                subtype=_name(ResourceName(api, "")), proto_service=self._services[api]
            )
            for api in apis
            if api in self._services
        ]
        return robot.ResourceRPCSubtypesResponse(resource_rpc_subtypes=subtypes)

    async def get_machine_status(self, *_: object) -> robot.GetMachineStatusResponse:
        machine = self._machine
        config = robot.ConfigStatus(revision=machine.revision)
        if machine.applied_at is not None:
            config.last_updated.CopyFrom(_timestamp(machine.applied_at))
        return robot.GetMachineStatusResponse(
            resources=[_status(name, node) for name, node in machine.nodes.items()],
            config=config,
            state=machine.state.value,  # type: ignore[arg-type]
        )

    async def get_version(self, *_: object) -> robot.GetVersionResponse:
        return robot.GetVersionResponse(
            platform="rdk", version=__version__, api_version=API_VERSION
        )

    async def get_cloud_metadata(self, *_: object) -> robot.GetCloudMetadataResponse:
        cloud = self._machine.config.cloud
        if cloud is None:
            raise NotInTheCloud("cloud metadata not available: this machine runs without a cloud")
        return robot.GetCloudMetadataResponse(
            primary_org_id=cloud.primary_org_id,
            location_id=cloud.location_id,
            machine_id=cloud.machine_id,
            machine_part_id=cloud.id,
        )

    async def stop_all(self, request: robot.StopAllRequest, _: Stream) -> robot.StopAllResponse:
        extra = {_read_name(each.name): to_dict(each.params) for each in request.extra}
        await self._machine.stop_all(extra)
        return robot.StopAllResponse()

    async def shutdown(self, _: object, stream: Stream) -> robot.ShutdownResponse:
        # The reply goes out first: connections stay open while resources close.
        self._shut_down(f"asked to by {stream.peer}")
        return robot.ShutdownResponse()

    async def log(self, request: robot.LogRequest, _: Stream) -> robot.LogResponse:
        """Whoever sent them has already applied its level."""
        for record in [_record(entry) for entry in request.logs]:
            # Not by the logger of that name, which would be kept for ever.
            _log.handle(record)
        return robot.LogResponse()

    async def get_operations(self, *_: object) -> robot.GetOperationsResponse:
        operations = self._machine.operations
        shown = [_operation(each, operations.started(each)) for each in operations.others()]
        return robot.GetOperationsResponse(operations=shown)

    async def cancel_operation(
        self, request: robot.CancelOperationRequest, _: Stream
    ) -> robot.CancelOperationResponse:
        """One that is over already is as good as cancelled."""
        for operation in self._machine.operations.find(request.id):
            operation.end(Cancelled(f"operation {operation.id} was cancelled"))
        return robot.CancelOperationResponse()

    async def block_for_operation(
        self, request: robot.BlockForOperationRequest, _: Stream
    ) -> robot.BlockForOperationResponse:
        operations = self._machine.operations.find(request.id)
        if operations:
            await asyncio.wait([operation.over for operation in operations])
        return robot.BlockForOperationResponse()


def _name(name: ResourceName) -> common.ResourceName:
    api = name.api
    return common.ResourceName(
        namespace=api.namespace, type=api.kind, subtype=api.subtype, name=name.short
    )


def _read_name(name: common.ResourceName) -> ResourceName:
    return ResourceName.of(Api(name.namespace, name.type, name.subtype), name.name)


def _timestamp(seconds: float) -> Timestamp:
    moment = Timestamp()
    moment.FromNanoseconds(int(seconds * 1e9))
    return moment


def _status(name: ResourceName, node: Node) -> robot.ResourceStatus:
    health = health_of(node)
    return robot.ResourceStatus(
        name=_name(name),
        state=health.state.value,  # type: ignore[arg-type]
        last_updated=_timestamp(node.since),
        revision=node.revision,
        error=health.reason or "",
    )


def _operation(operation: Operation, started: float) -> robot.Operation:
    return robot.Operation(
        id=operation.id,
        method=operation.method.path,
        arguments=_arguments(operation.stream.request),
        started=_timestamp(started),
    )


def _arguments(request: Any) -> Struct:
    arguments = Struct()
    if isinstance(request, Message):
        arguments.update(_shortened(_shown(request)))
    return arguments


def _shown(request: Message) -> dict[str, Any]:
    """Of a large request only how large it is: whoever asks must not hold up everybody else."""
    size = request.ByteSize()
    if size <= _LARGEST_SHOWN:
        try:
            return MessageToDict(request, preserving_proto_field_name=True)
        except (SerializeToJsonError, ValueError):
            pass  # A number that JSON does not have.
    return {"name": getattr(request, "name", ""), "…": f"{size} bytes"}


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_ARGUMENT:
        return f"{value[:_LONGEST_ARGUMENT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _shortened(member) for key, member in value.items()}
    if isinstance(value, list):
        rest = [f"… ({len(value)} in all)"] if len(value) > _LONGEST_ARGUMENT else []
        return [_shortened(member) for member in value[:_LONGEST_ARGUMENT]] + rest
    return value


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}


def _record(entry: common.LogEntry) -> logging.LogRecord:
    level = _LEVELS.get(entry.level.lower())
    if level is None:
        raise InvalidRequest(
            f'"{entry.level}" is not a log level; it is one of {", ".join(_LEVELS)}'
        )
    record = logging.makeLogRecord(
        {
            "name": entry.logger_name or "rdk",
            "levelno": level,
            "levelname": logging.getLevelName(level),
            "msg": entry.message,
        }
    )
    if 0 < entry.time.seconds < _END_OF_TIME:
        record.created = entry.time.ToNanoseconds() / 1e9
        record.msecs = entry.time.nanos / 1e6 % 1000
    return record
