"""The motion API. The SDK's own service takes a heading that is left out for north, and reads
nothing that older clients name what they move by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from viam.gen.service.motion.v1 import motion_pb2 as motion

from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.described import Answer, described_methods
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = motion.DESCRIPTOR.services_by_name["MotionService"]

REFUSALS = {
    "TempStreamArmJointPositions": (
        "joint positions are not streamed through a motion service here: the method is a temporary "
        "one; stream them to the arm itself, with MoveThroughJointPositionsStreamed"
    )
}


def motion_methods(api: Api, find: Find) -> Iterable[Method]:
    return described_methods(_DESCRIPTOR, MotionService(api, find).answers(), REFUSALS)


class MotionService(CommonAnswers):
    def answers(self) -> Mapping[str, Answer]:
        return {
            **super().answers(),
            "Move": self.move,
            "MoveOnMap": self.move_on_map,
            "MoveOnGlobe": self.move_on_globe,
            "GetPose": self.get_pose,
            "StopPlan": self.stop_plan,
            "ListPlanStatuses": self.list_plan_statuses,
            "GetPlan": self.get_plan,
        }

    async def move(self, request: motion.MoveRequest, stream: Stream) -> motion.MoveResponse:
        success = await self.resource(request.name).move(
            named(request, "component_name"),
            request.destination,
            _given(request, "world_state"),
            _given(request, "constraints"),
            **_rest(request, stream),
        )
        return motion.MoveResponse(success=success)

    async def move_on_map(
        self, request: motion.MoveOnMapRequest, stream: Stream
    ) -> motion.MoveOnMapResponse:
        execution = await self.resource(request.name).move_on_map(
            named(request, "component_name"),
            request.destination,
            named(request, "slam_service_name"),
            _given(request, "motion_configuration"),
            request.obstacles,
            **_rest(request, stream),
        )
        return motion.MoveOnMapResponse(execution_id=execution)

    async def move_on_globe(
        self, request: motion.MoveOnGlobeRequest, stream: Stream
    ) -> motion.MoveOnGlobeResponse:
        execution = await self.resource(request.name).move_on_globe(
            named(request, "component_name"),
            request.destination,
            named(request, "movement_sensor_name"),
            request.obstacles,
            _given(request, "heading"),
            _given(request, "motion_configuration"),
            bounding_regions=request.bounding_regions,
            **_rest(request, stream),
        )
        return motion.MoveOnGlobeResponse(execution_id=execution)

    async def get_pose(
        self, request: motion.GetPoseRequest, stream: Stream
    ) -> motion.GetPoseResponse:
        pose = await self.resource(request.name).get_pose(
            named(request, "component_name"),
            request.destination_frame,
            request.supplemental_transforms,
            **_rest(request, stream),
        )
        return motion.GetPoseResponse(pose=pose)

    async def stop_plan(
        self, request: motion.StopPlanRequest, stream: Stream
    ) -> motion.StopPlanResponse:
        resource = self.resource(request.name)
        await resource.stop_plan(named(request, "component_name"), **_rest(request, stream))
        return motion.StopPlanResponse()

    async def list_plan_statuses(
        self, request: motion.ListPlanStatusesRequest, stream: Stream
    ) -> motion.ListPlanStatusesResponse:
        statuses = await self.resource(request.name).list_plan_statuses(
            request.only_active_plans, **_rest(request, stream)
        )
        return motion.ListPlanStatusesResponse(plan_statuses_with_ids=statuses)

    async def get_plan(
        self, request: motion.GetPlanRequest, stream: Stream
    ) -> motion.GetPlanResponse:
        plan: motion.GetPlanResponse = await self.resource(request.name).get_plan(
            named(request, "component_name"),
            request.last_plan_only,
            _given(request, "execution_id"),
            **_rest(request, stream),
        )
        return plan


def named(request: Any, field: str) -> str:
    """Older clients spell the whole name of the resource out, in a field of their own."""
    name: str = getattr(request, field)
    if name or not request.HasField(f"{field}_deprecated"):
        return name
    older: str = getattr(request, f"{field}_deprecated").name
    return older


def _given(request: Any, field: str) -> Any:
    return getattr(request, field) if request.HasField(field) else None


def _rest(request: Any, stream: Stream) -> dict[str, Any]:
    """The SDK's class hands over no metadata, and whoever is written for it may take none."""
    return {"extra": extra_to_dict(request.extra), "timeout": time_left(stream)}
