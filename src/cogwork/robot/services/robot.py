"""RobotService: the methods of the machine as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.version_metadata import API_VERSION

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.versions.named_version import NAMED_VERSION
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.node import Node, NodeState
from cogwork.graph.public_apis import SERVICE_BY_API
from cogwork.logs.rules import LevelOf
from cogwork.resource.messages.structs import to_dict
from cogwork.resource.messages.timestamps import to_timestamp
from cogwork.robot.hosts import ModuleStatus, PackageState, PackageStatus
from cogwork.robot.jobs.job_record import JobRecord
from cogwork.robot.machine import Machine
from cogwork.robot.services.frames import FramesService
from cogwork.robot.services.log import LogService
from cogwork.robot.services.logger_resolver import LoggerResolver
from cogwork.robot.services.operations import OperationsService
from cogwork.robot.services.sessions import SessionsService
from cogwork.robot.services.tunnel import list_tunnels, serve_tunnel
from cogwork.robot.status.health import health_of
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = robot.DESCRIPTOR.services_by_name["RobotService"]
_NOT_YET_SERVED = {
    "traces": ("SendTraces",),
    "uploads": ("UploadDataFromPath",),
}
REFUSALS = {
    **{
        name: f"{name} is not served: {subject} are not part of this release yet"
        for subject, names in _NOT_YET_SERVED.items()
        for name in names
    },
    **{
        name: f"{name} was removed from the public API; use GetMachineStatus"
        for name in ("GetStatus", "StreamStatus")
    },
}


class NoCloudMetadata(CogworkError):
    status = "FAILED_PRECONDITION"


def robot_methods(
    machine: Machine,
    clock: Clock,
    shut_down: Callable[[str], None],
    level_of: LevelOf,
) -> Iterable[Method]:
    """Return the methods of RobotService."""
    loggers = LoggerResolver(machine.nodes, lambda: machine.modules)
    service = RobotService(machine, shut_down)
    handlers = {
        **service.unary_handlers(),
        **OperationsService(machine.operations).unary_handlers(),
        **SessionsService(machine.sessions).unary_handlers(),
        **FramesService(machine.frames).unary_handlers(),
        "Log": LogService(loggers.resolve, clock, level_of).log,
    }
    return methods_from_descriptor(
        _DESCRIPTOR, handlers, REFUSALS, streams={"Tunnel": service.tunnel}
    )


class RobotService:
    def __init__(self, machine: Machine, shut_down: Callable[[str], None]) -> None:
        self._machine = machine
        self._shut_down = shut_down
        self._listed_names: tuple[ResourceName, ...] = ()
        self._listed = robot.ResourceNamesResponse()

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            "ResourceNames": self.resource_names,
            "ResourceRPCSubtypes": self.resource_rpc_subtypes,
            "GetMachineStatus": self.get_machine_status,
            "GetVersion": self.get_version,
            "GetCloudMetadata": self.get_cloud_metadata,
            "GetModelsFromModules": self.get_models_from_modules,
            "RestartModule": self.restart_module,
            "ListTunnels": self.list_tunnels,
            "StopAll": self.stop_all,
            "Shutdown": self.shutdown,
        }

    async def resource_names(self, *_: object) -> robot.ResourceNamesResponse:
        """Return the resource names.

        The SDK sends this request every few seconds, and disconnects if the reply takes a second.
        The reply is therefore cached until the names change, and never waits for anything.
        """
        services = self._services_by_api()
        names = tuple(name for name in self._machine.names() if name.api in services)
        if names != self._listed_names:
            self._listed_names = names
            self._listed = robot.ResourceNamesResponse(resources=map(name_to_proto, names))
        return self._listed

    async def resource_rpc_subtypes(self, *_: object) -> robot.ResourceRPCSubtypesResponse:
        services = self._services_by_api()
        apis = dict.fromkeys(name.api for name in self._machine.names())
        subtypes = [
            robot.ResourceRPCSubtype(
                subtype=name_to_proto(ResourceName(api, "")), proto_service=services[api]
            )
            for api in apis
            if api in services
        ]
        return robot.ResourceRPCSubtypesResponse(resource_rpc_subtypes=subtypes)

    async def get_machine_status(self, *_: object) -> robot.GetMachineStatusResponse:
        machine = self._machine
        config = robot.ConfigStatus(revision=machine.revision)
        if machine.applied_at is not None:
            config.last_updated.CopyFrom(to_timestamp(machine.applied_at))
        return robot.GetMachineStatusResponse(
            resources=[
                _to_resource_status(name, node, machine.redact)
                for name, node in machine.nodes.items()
            ]
            + [_to_idle_status(machine, name) for name in machine.idle_defaults()],
            config=config,
            state=machine.state.value,  # type: ignore[arg-type]
            modules=[_to_module_status(each) for each in machine.modules.statuses()],
            packages=[_to_package_status(each) for each in machine.packages.statuses()],
            job_statuses=[_to_job_status(record) for record in machine.jobs.statuses()],
        )

    def _services_by_api(self) -> Mapping[Api, str]:
        # Put built-in APIs last: a module must not replace their services.
        return {**self._machine.services(), **SERVICE_BY_API}

    async def get_version(self, *_: object) -> robot.GetVersionResponse:
        return robot.GetVersionResponse(
            platform="rdk", version=NAMED_VERSION, api_version=API_VERSION
        )

    async def get_cloud_metadata(self, *_: object) -> robot.GetCloudMetadataResponse:
        cloud = self._machine.config.cloud
        if cloud is None:
            raise NoCloudMetadata("cloud metadata not available: this machine runs without a cloud")
        return robot.GetCloudMetadataResponse(
            primary_org_id=cloud.primary_org_id,
            location_id=cloud.location_id,
            machine_id=cloud.machine_id,
            machine_part_id=cloud.id,
        )

    async def stop_all(self, request: robot.StopAllRequest, _: Stream) -> robot.StopAllResponse:
        extra = {name_from_proto(each.name): to_dict(each.params) for each in request.extra}
        await self._machine.motion.stop_all(extra)
        return robot.StopAllResponse()

    async def get_models_from_modules(self, *_: object) -> robot.GetModelsFromModulesResponse:
        return robot.GetModelsFromModulesResponse(
            models=[
                robot.ModuleModel(
                    module_name=each.module,
                    model=str(each.model),
                    api=str(each.api),
                    from_local_module=each.is_local,
                )
                for each in self._machine.modules.models()
            ]
        )

    async def restart_module(
        self, request: robot.RestartModuleRequest, _: Stream
    ) -> robot.RestartModuleResponse:
        self._machine.modules.restart(request.module_name, request.module_id)
        return robot.RestartModuleResponse()

    async def list_tunnels(self, *_: object) -> robot.ListTunnelsResponse:
        return list_tunnels(self._machine.config.network.traffic_tunnel_endpoints)

    async def tunnel(self, stream: Stream) -> None:
        await serve_tunnel(stream, self._machine.config.network.traffic_tunnel_endpoints)

    async def shutdown(self, _: object, stream: Stream) -> robot.ShutdownResponse:
        # Connections stay open while resources close, so the reply is still sent.
        self._shut_down(f"requested by {stream.peer}")
        return robot.ShutdownResponse()


def _to_job_status(record: JobRecord) -> robot.JobStatus:
    return robot.JobStatus(
        job_name=record.name,
        recent_successful_runs=[to_timestamp(time) for time in record.successes],
        recent_failed_runs=[to_timestamp(failure.time) for failure in record.failures],
    )


_PACKAGE_STATES = {
    PackageState.WAITING: robot.PackageStatus.STATE_DOWNLOADING,
    PackageState.DOWNLOADING: robot.PackageStatus.STATE_DOWNLOADING,
    PackageState.UNPACKING: robot.PackageStatus.STATE_LOADING,
    PackageState.READY: robot.PackageStatus.STATE_READY,
    PackageState.FAILED: robot.PackageStatus.STATE_FAILED,
}


def _to_package_status(package: PackageStatus) -> robot.PackageStatus:
    is_downloading = package.state is PackageState.DOWNLOADING
    return robot.PackageStatus(
        name=package.name,
        type=f"PACKAGE_TYPE_{package.type.upper()}",
        state=_PACKAGE_STATES[package.state],
        error=package.reason,
        last_updated=to_timestamp(package.since),
        version=package.version,
        bytes_downloaded=package.done if is_downloading else package.total or package.done,
        total_bytes=package.total or 0,
    )


def _to_module_status(module: ModuleStatus) -> robot.ModuleStatus:
    return robot.ModuleStatus(
        module_name=module.name,
        state=module.state.value,  # type: ignore[arg-type]
        last_updated=to_timestamp(module.since),
        error=module.error,
        consecutive_failures=module.failures,
    )


def _to_resource_status(
    name: ResourceName, node: Node, redact: Callable[[str], str]
) -> robot.ResourceStatus:
    health = health_of(node, redact)
    return robot.ResourceStatus(
        name=name_to_proto(name),
        state=health.state.value,  # type: ignore[arg-type]
        last_updated=to_timestamp(node.since),
        revision=node.revision,
        error=health.reason or "",
    )


def _to_idle_status(machine: Machine, name: ResourceName) -> robot.ResourceStatus:
    """Return the status of a default service that is built by its first call."""
    return robot.ResourceStatus(
        name=name_to_proto(name),
        state=NodeState.READY.value,  # type: ignore[arg-type]
        last_updated=to_timestamp(machine.applied_at or 0.0),
        revision=machine.revision,
    )


def name_to_proto(name: ResourceName) -> common.ResourceName:
    api = name.api
    return common.ResourceName(
        namespace=api.namespace, type=api.kind, subtype=api.subtype, name=name.short
    )


def name_from_proto(message: common.ResourceName) -> ResourceName:
    return ResourceName.from_short(
        Api(message.namespace, message.type, message.subtype), message.name
    )
