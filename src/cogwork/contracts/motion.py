"""What a motion service keeps to."""

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

from cogwork.contracts.bench import Bench
from cogwork.contracts.contract import PATIENCE, Contract, explained
from cogwork.contracts.moving import PROMPTLY

NEAR = 1.0
"""Millimetres, or degrees."""


class MotionContract(Contract):
    """`beside` has what is moved."""

    api = "rdk:service:motion"
    client = MotionClient

    component: ClassVar[str]
    """Something with a frame that it moves within moments."""
    step: ClassVar[Pose]
    """A pose of the component that is not far, seen from where the component is at first."""
    base: ClassVar[str | None] = None
    """A base that it drives, if it does."""
    movement_sensor: ClassVar[str | None] = None
    """What says where on the globe the base is."""
    slam: ClassVar[str | None] = None
    """What says where on a map the base is."""
    far_away: ClassVar[GeoPoint] = GeoPoint()
    """Where the base gets in no less than some seconds."""

    async def test_it_moves_a_component_to_its_destination(self, it: Any) -> None:
        there = PoseInFrame(reference_frame=self.component, pose=self.step)
        before = await it.get_pose(self.component, "world")
        wanted = await it.get_pose("mark", "world", [_mark("mark", there)])
        assert await it.move(self.component, there) is True
        reached = await it.get_pose(self.component, "world")
        assert reached.reference_frame == "world"
        assert _apart(before.pose, wanted.pose) > NEAR
        assert _apart(reached.pose, wanted.pose) < NEAR

    async def test_a_pose_is_seen_from_any_frame(self, it: Any) -> None:
        own = await it.get_pose(self.component, self.component)
        assert own.reference_frame == self.component
        assert _apart(own.pose, Pose()) < NEAR
        assert (await it.get_pose(self.component, "")).reference_frame == "world"

    async def test_what_nobody_has_is_not_found(self, it: Any) -> None:
        for asking in (
            it.move("nobody", PoseInFrame(reference_frame="world", pose=Pose(x=1))),
            it.move(self.component, PoseInFrame(reference_frame="nowhere", pose=Pose(x=1))),
            it.get_pose("nobody", "world"),
            it.get_pose(self.component, "nowhere"),
            it.get_plan("nobody"),
            it.stop_plan("nobody"),
        ):
            await _refused(asking, Status.NOT_FOUND)

    async def test_what_is_no_pose_is_refused(self, it: Any) -> None:
        nowhere = PoseInFrame(reference_frame="world", pose=Pose(x=math.nan))
        await _refused(it.move(self.component, nowhere), Status.INVALID_ARGUMENT)

    async def test_obstacles_and_constraints_count_or_are_refused(self, it: Any) -> None:
        """What is far off is in nobody's way; and whoever minds nothing has to say so."""
        there = PoseInFrame(reference_frame=self.component, pose=self.step)
        ball = Geometry(center=Pose(x=1e6), sphere=Sphere(radius_mm=1))
        obstacles = [GeometriesInFrame(reference_frame="world", geometries=[ball])]
        straight = Constraints(linear_constraint=[LinearConstraint(line_tolerance_mm=1000)])
        with explained("obstacles"):
            await it.move(self.component, there, WorldState(obstacles=obstacles))
        with explained("a constraint"):
            await it.move(self.component, there, constraints=straight)
        await it.move(self.component, there, WorldState(), Constraints())

    async def test_it_drives_on_after_the_call_until_it_is_stopped(self, it: Any) -> None:
        if self.base is None:
            await _refused(self.set_off(it), Status.UNIMPLEMENTED, Status.NOT_FOUND)
            return
        since = time.monotonic()
        execution = await self.set_off(it)
        assert time.monotonic() - since < 1
        (listed,) = await it.list_plan_statuses(only_active_plans=True)
        assert (listed.execution_id, listed.component_name) == (execution, self.base)
        await it.stop_plan(self.base)
        assert await it.list_plan_statuses(only_active_plans=True) == []
        (listed,) = await it.list_plan_statuses()
        assert listed.status.state == PlanState.PLAN_STATE_STOPPED
        await it.stop_plan(self.base)

    async def test_its_plans_can_be_asked_for(self, it: Any) -> None:
        if self.base is None:
            return
        execution = await self.set_off(it)
        for plan in (
            await it.get_plan(self.base),
            await it.get_plan(self.base, last_plan_only=True, execution_id=execution),
        ):
            current = _in_progress(plan, self.base, execution)
            assert [*current.plan.steps[-1].step] == [self.base]
        await _refused(it.get_plan(self.base, execution_id="none"), Status.NOT_FOUND)
        await it.stop_plan(self.base)
        stopped = (await it.get_plan(self.base)).current_plan_with_status
        assert stopped.status.state == PlanState.PLAN_STATE_STOPPED
        assert [each.state for each in stopped.status_history] == [PlanState.PLAN_STATE_IN_PROGRESS]

    async def test_the_newest_plan_has_the_base(self, it: Any) -> None:
        if self.base is None:
            return
        first, second = await self.set_off(it), await self.set_off(it)
        (listed,) = await it.list_plan_statuses(only_active_plans=True)
        assert listed.execution_id == second
        older = (await it.get_plan(self.base, execution_id=first)).current_plan_with_status
        assert older.status.state == PlanState.PLAN_STATE_STOPPED
        await it.stop_plan(self.base)

    async def test_everything_stops_when_told_to(self, bench: Bench, it: Any) -> None:
        if self.base is None:
            return
        await self.set_off(it)
        since = time.monotonic()
        await bench.machine.stop_all({})
        assert time.monotonic() - since < PROMPTLY
        assert await it.list_plan_statuses(only_active_plans=True) == []

    async def test_where_it_is_already_it_arrives(self, it: Any, bench: Bench) -> None:
        """On a map; a base that nobody has goes nowhere there."""
        await _refused(it.move_on_map("nobody", Pose(), self.slam or "nobody"), Status.NOT_FOUND)
        if self.base is None or self.slam is None:
            return
        here = await self.on_map(bench)
        execution = await it.move_on_map(self.base, here, self.slam)
        async with asyncio.timeout(PATIENCE):
            while await it.list_plan_statuses(only_active_plans=True):
                await asyncio.sleep(0.01)
        plan = (await it.get_plan(self.base, execution_id=execution)).current_plan_with_status
        assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED

    async def test_what_it_has_not_got_is_refused(self, it: Any) -> None:
        nowhere = GeoPoint(latitude=91)
        sensor = self.movement_sensor or "nobody"
        with pytest.raises(GRPCError) as refused:
            await it.move_on_globe(self.base or "nobody", nowhere, sensor)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)
        if self.base is not None:
            asking = it.move_on_globe(self.base, self.far_away, "nobody")
            await _refused(asking, Status.NOT_FOUND)

    async def test_joint_positions_are_streamed_or_refused(self, bench: Bench) -> None:
        stub = MotionServiceStub(bench.channel)
        begun = TempStreamArmJointPositionsRequest.Init(component_name=self.component)
        with explained("TempStreamArmJointPositions"):
            async with stub.TempStreamArmJointPositions.open(timeout=PATIENCE) as stream:
                await stream.send_message(
                    TempStreamArmJointPositionsRequest(name="it", init=begun), end=True
                )
                async for _ in stream:
                    pass

    def set_off(self, it: Any) -> Coroutine[Any, Any, str]:
        """On a way that lasts for some seconds."""
        base, sensor = self.base or "nobody", self.movement_sensor or "nobody"
        return it.move_on_globe(base, self.far_away, sensor)  # type: ignore[no-any-return]

    async def on_map(self, bench: Bench) -> Pose:
        """Where the base is on the map."""
        assert self.slam is not None
        return await SLAMClient(self.slam, bench.channel).get_position(timeout=PATIENCE)


async def _refused(asking: Coroutine[Any, Any, Any], *statuses: Status) -> None:
    with pytest.raises(GRPCError) as refused:
        await asking
    assert refused.value.status in statuses, refused.value
    assert " " in (refused.value.message or "")


def _in_progress(plan: GetPlanResponse, base: str, execution: str) -> Any:
    current = plan.current_plan_with_status
    assert current.status.state == PlanState.PLAN_STATE_IN_PROGRESS
    assert current.status.HasField("timestamp")
    assert (current.plan.component_name, current.plan.execution_id) == (base, execution)
    assert current.plan.id
    assert not plan.replan_history
    return current


def _mark(name: str, place: PoseInFrame) -> Transform:
    return Transform(reference_frame=name, pose_in_observer_frame=place)


def _apart(one: Pose, other: Pose) -> float:
    return math.dist((one.x, one.y, one.z), (other.x, other.y, other.z))
