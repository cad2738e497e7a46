"""The contract of motion services."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.common import (
    GeometriesInFrame,
    Geometry,
    GeoPoint,
    Pose,
    PoseInFrame,
    Sphere,
    Transform,
    WorldState,
)
from viam.proto.service.motion import (
    Constraints,
    GetPlanResponse,
    LinearConstraint,
    MotionServiceStub,
    PlanState,
    TempStreamArmJointPositionsRequest,
)
from viam.services.motion.client import MotionClient
from viam.services.slam.client import SLAMClient

from cogwork.contracts.contract import TIMEOUT, Contract, allow_refusal
from cogwork.contracts.harness import Harness
from cogwork.contracts.moving import assert_stops_in_time

TOLERANCE = 1.0
"""Tolerance in millimeters or degrees."""


class MotionContract(Contract):
    """The contract of motion services. `other_resources` must contain the components to move."""

    api = "rdk:service:motion"
    client = MotionClient

    component: ClassVar[str]
    """Component with a frame that the service can move quickly."""
    step: ClassVar[Pose]
    """Nearby target pose, relative to the component's initial pose."""
    base: ClassVar[str | None] = None
    """Base that the service drives, if any."""
    movement_sensor: ClassVar[str | None] = None
    """Movement sensor with the geographic position of the base."""
    slam: ClassVar[str | None] = None
    """SLAM service with the position of the base on a map."""
    far_away: ClassVar[GeoPoint] = GeoPoint()
    """Position that the base takes at least several seconds to reach."""

    async def test_moves_component_to_destination(self, resource: Any) -> None:
        there = PoseInFrame(reference_frame=self.component, pose=self.step)
        before = await resource.get_pose(self.component, "world")
        wanted = await resource.get_pose("mark", "world", [_make_transform("mark", there)])
        assert await resource.move(self.component, there) is True
        reached = await resource.get_pose(self.component, "world")
        assert reached.reference_frame == "world"
        assert _distance(before.pose, wanted.pose) > TOLERANCE
        assert _distance(reached.pose, wanted.pose) < TOLERANCE

    async def test_gets_pose_in_any_frame(self, resource: Any) -> None:
        own = await resource.get_pose(self.component, self.component)
        assert own.reference_frame == self.component
        assert _distance(own.pose, Pose()) < TOLERANCE
        assert (await resource.get_pose(self.component, "")).reference_frame == "world"

    async def test_unknown_names_are_not_found(self, resource: Any) -> None:
        for asking in (
            resource.move("missing", PoseInFrame(reference_frame="world", pose=Pose(x=1))),
            resource.move(self.component, PoseInFrame(reference_frame="nowhere", pose=Pose(x=1))),
            resource.get_pose("missing", "world"),
            resource.get_pose(self.component, "nowhere"),
            resource.get_plan("missing"),
            resource.stop_plan("missing"),
        ):
            await _assert_refused(asking, Status.NOT_FOUND)

    async def test_refuses_invalid_pose(self, resource: Any) -> None:
        nowhere = PoseInFrame(reference_frame="world", pose=Pose(x=math.nan))
        await _assert_refused(resource.move(self.component, nowhere), Status.INVALID_ARGUMENT)

    async def test_obstacles_and_constraints_are_honored_or_refused(self, resource: Any) -> None:
        """A distant obstacle does not block the move. A service that does not support obstacles or
        constraints must refuse them."""
        there = PoseInFrame(reference_frame=self.component, pose=self.step)
        ball = Geometry(center=Pose(x=1e6), sphere=Sphere(radius_mm=1))
        obstacles = [GeometriesInFrame(reference_frame="world", geometries=[ball])]
        straight = Constraints(linear_constraint=[LinearConstraint(line_tolerance_mm=1000)])
        with allow_refusal("obstacles"):
            await resource.move(self.component, there, WorldState(obstacles=obstacles))
        with allow_refusal("a constraint"):
            await resource.move(self.component, there, constraints=straight)
        await resource.move(self.component, there, WorldState(), Constraints())

    async def test_drives_until_stopped(self, resource: Any) -> None:
        if self.base is None:
            await _assert_refused(
                self.start_driving(resource), Status.UNIMPLEMENTED, Status.NOT_FOUND
            )
            return
        since = time.monotonic()
        execution = await self.start_driving(resource)
        assert time.monotonic() - since < TIMEOUT, "it must return when the base starts to drive"
        (listed,) = await resource.list_plan_statuses(only_active_plans=True)
        assert (listed.execution_id, listed.component_name) == (execution, self.base)
        await resource.stop_plan(self.base)
        assert await resource.list_plan_statuses(only_active_plans=True) == []
        (listed,) = await resource.list_plan_statuses()
        assert listed.status.state == PlanState.PLAN_STATE_STOPPED
        await resource.stop_plan(self.base)

    async def test_plans_can_be_queried(self, resource: Any) -> None:
        if self.base is None:
            return
        execution = await self.start_driving(resource)
        for plan in (
            await resource.get_plan(self.base),
            await resource.get_plan(self.base, last_plan_only=True, execution_id=execution),
        ):
            current = _assert_in_progress(plan, self.base, execution)
            assert [*current.plan.steps[-1].step] == [self.base]
        await _assert_refused(resource.get_plan(self.base, execution_id="none"), Status.NOT_FOUND)
        await resource.stop_plan(self.base)
        stopped = (await resource.get_plan(self.base)).current_plan_with_status
        assert stopped.status.state == PlanState.PLAN_STATE_STOPPED
        assert [each.state for each in stopped.status_history] == [PlanState.PLAN_STATE_IN_PROGRESS]

    async def test_newest_plan_wins(self, resource: Any) -> None:
        if self.base is None:
            return
        first, second = await self.start_driving(resource), await self.start_driving(resource)
        (listed,) = await resource.list_plan_statuses(only_active_plans=True)
        assert listed.execution_id == second
        older = (await resource.get_plan(self.base, execution_id=first)).current_plan_with_status
        assert older.status.state == PlanState.PLAN_STATE_STOPPED
        await resource.stop_plan(self.base)

    async def test_stop_all_stops_it(self, harness: Harness, resource: Any) -> None:
        if self.base is None:
            return

        async def stop_all() -> float:
            await self.start_driving(resource)
            since = time.monotonic()
            await harness.machine.motion.stop_all({})
            took = time.monotonic() - since
            assert await resource.list_plan_statuses(only_active_plans=True) == []
            return took

        await assert_stops_in_time(stop_all)

    async def test_move_to_current_place_succeeds(self, resource: Any, harness: Harness) -> None:
        """A move to the current place on a map must succeed; a move of an unknown base must be
        refused."""
        await _assert_refused(
            resource.move_on_map("missing", Pose(), self.slam or "missing"), Status.NOT_FOUND
        )
        if self.base is None or self.slam is None:
            return
        here = await self.get_map_pose(harness)
        execution = await resource.move_on_map(self.base, here, self.slam)
        async with asyncio.timeout(TIMEOUT):
            while await resource.list_plan_statuses(only_active_plans=True):
                await asyncio.sleep(0.01)
        plan = (await resource.get_plan(self.base, execution_id=execution)).current_plan_with_status
        assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED

    async def test_refuses_invalid_globe_moves(self, resource: Any) -> None:
        nowhere = GeoPoint(latitude=91)
        sensor = self.movement_sensor or "missing"
        with pytest.raises(GRPCError) as refused:
            await resource.move_on_globe(self.base or "missing", nowhere, sensor)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)
        if self.base is not None:
            asking = resource.move_on_globe(self.base, self.far_away, "missing")
            await _assert_refused(asking, Status.NOT_FOUND)

    async def test_joint_positions_are_streamed_or_refused(self, harness: Harness) -> None:
        stub = MotionServiceStub(harness.channel)
        begun = TempStreamArmJointPositionsRequest.Init(component_name=self.component)
        with allow_refusal("TempStreamArmJointPositions"):
            async with stub.TempStreamArmJointPositions.open(timeout=TIMEOUT) as stream:
                await stream.send_message(
                    TempStreamArmJointPositionsRequest(name="it", init=begun), end=True
                )
                async for _ in stream:
                    pass

    def start_driving(self, resource: Any) -> Coroutine[Any, Any, str]:
        """Start a drive that lasts several seconds."""
        base, sensor = self.base or "missing", self.movement_sensor or "missing"
        return resource.move_on_globe(base, self.far_away, sensor)  # type: ignore[no-any-return]

    async def get_map_pose(self, harness: Harness) -> Pose:
        """Return the pose of the base on the map."""
        assert self.slam is not None
        return await SLAMClient(self.slam, harness.channel).get_position(timeout=TIMEOUT)


async def _assert_refused(asking: Coroutine[Any, Any, Any], *statuses: Status) -> None:
    with pytest.raises(GRPCError) as refused:
        await asking
    assert refused.value.status in statuses, refused.value
    assert " " in (refused.value.message or "")


def _assert_in_progress(plan: GetPlanResponse, base: str, execution: str) -> Any:
    current = plan.current_plan_with_status
    assert current.status.state == PlanState.PLAN_STATE_IN_PROGRESS
    assert current.status.HasField("timestamp")
    assert (current.plan.component_name, current.plan.execution_id) == (base, execution)
    assert current.plan.id
    assert not plan.replan_history
    return current


def _make_transform(name: str, place: PoseInFrame) -> Transform:
    return Transform(reference_frame=name, pose_in_observer_frame=place)


def _distance(one: Pose, other: Pose) -> float:
    return math.dist((one.x, one.y, one.z), (other.x, other.y, other.z))
