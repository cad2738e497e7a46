"""The motion API.

The SDK's own service treats a missing heading as north, and ignores the deprecated fields in which
older clients name the component to move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from viam.gen.service.motion.v1 import motion_pb2 as motion

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import UnaryHandler, methods_from_descriptor
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = motion.DESCRIPTOR.services_by_name["MotionService"]

REFUSALS = {
    "TempStreamArmJointPositions": (
        "streaming joint positions through a motion service is not supported, because the method "
        "is temporary; stream them to the arm with MoveThroughJointPositionsStreamed"
    )
}


def motion_methods(api: Api, find: FindResource) -> Iterable[Method]:
    return methods_from_descriptor(_DESCRIPTOR, MotionService(api, find).unary_handlers(), REFUSALS)


class MotionService(ResourceService):
    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            **super().unary_handlers(),
            "Move": self.move,
            "MoveOnMap": self.move_on_map,
            "MoveOnGlobe": self.move_on_globe,
            "GetPose": self.get_pose,
            "StopPlan": self.stop_plan,
            "ListPlanStatuses": self.list_plan_statuses,
            "GetPlan": self.get_plan,
        }

    async def move(self, request: motion.MoveRequest, stream: Stream) -> motion.MoveResponse:
        success = await self.find_resource(request.name).move(
            read_resource_name(request, "component_name"),
            request.destination,
            _optional_field(request, "world_state"),
            _optional_field(request, "constraints"),
            **_call_options(request, stream),
        )
        return motion.MoveResponse(success=success)

    async def move_on_map(
        self, request: motion.MoveOnMapRequest, stream: Stream
    ) -> motion.MoveOnMapResponse:
        execution = await self.find_resource(request.name).move_on_map(
            read_resource_name(request, "component_name"),
            request.destination,
            read_resource_name(request, "slam_service_name"),
            _optional_field(request, "motion_configuration"),
            request.obstacles,
            **_call_options(request, stream),
        )
        return motion.MoveOnMapResponse(execution_id=execution)

    async def move_on_globe(
        self, request: motion.MoveOnGlobeRequest, stream: Stream
    ) -> motion.MoveOnGlobeResponse:
        execution = await self.find_resource(request.name).move_on_globe(
            read_resource_name(request, "component_name"),
            request.destination,
            read_resource_name(request, "movement_sensor_name"),
            request.obstacles,
            _optional_field(request, "heading"),
            _optional_field(request, "motion_configuration"),
            bounding_regions=request.bounding_regions,
            **_call_options(request, stream),
        )
        return motion.MoveOnGlobeResponse(execution_id=execution)

    async def get_pose(
        self, request: motion.GetPoseRequest, stream: Stream
    ) -> motion.GetPoseResponse:
        pose = await self.find_resource(request.name).get_pose(
            read_resource_name(request, "component_name"),
            request.destination_frame,
            request.supplemental_transforms,
            **_call_options(request, stream),
        )
        return motion.GetPoseResponse(pose=pose)

    async def stop_plan(
        self, request: motion.StopPlanRequest, stream: Stream
    ) -> motion.StopPlanResponse:
        resource = self.find_resource(request.name)
        await resource.stop_plan(
            read_resource_name(request, "component_name"), **_call_options(request, stream)
        )
        return motion.StopPlanResponse()

    async def list_plan_statuses(
        self, request: motion.ListPlanStatusesRequest, stream: Stream
    ) -> motion.ListPlanStatusesResponse:
        statuses = await self.find_resource(request.name).list_plan_statuses(
            request.only_active_plans, **_call_options(request, stream)
        )
        return motion.ListPlanStatusesResponse(plan_statuses_with_ids=statuses)

    async def get_plan(
        self, request: motion.GetPlanRequest, stream: Stream
    ) -> motion.GetPlanResponse:
        plan: motion.GetPlanResponse = await self.find_resource(request.name).get_plan(
            read_resource_name(request, "component_name"),
            request.last_plan_only,
            _optional_field(request, "execution_id"),
            **_call_options(request, stream),
        )
        return plan


def read_resource_name(request: Any, field: str) -> str:
    """Return a resource name; older clients send the full name in a deprecated field."""
    name: str = getattr(request, field)
    if name or not request.HasField(f"{field}_deprecated"):
        return name
    deprecated: str = getattr(request, f"{field}_deprecated").name
    return deprecated


def _optional_field(request: Any, field: str) -> Any:
    return getattr(request, field) if request.HasField(field) else None


def _call_options(request: Any, stream: Stream) -> dict[str, Any]:
    """Return the options of a call, without metadata, which some classes written for the SDK do not
    accept."""
    return {"extra": extra_to_dict(request.extra), "timeout": time_left(stream)}
