"""The contract of arms."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.arm import Arm, JointPositions, MoveOptions, Pose
from viam.components.arm.client import ArmClient

from cogwork.contracts.contract import TIMEOUT, allow_refusal
from cogwork.contracts.kinematics import fetch_kinematics
from cogwork.contracts.moving import MovingContract
from cogwork.spatial.kinematics import Chain

Batch = list[Arm.TrajectoryPoint]


class ArmContract(MovingContract):
    api = "rdk:component:arm"
    client = ArmClient

    near: ClassVar[Sequence[float]] = (2.0, 4.0, 6.0, 0.0, 8.0, 0.0)
    """Joint positions that the arm reaches quickly from its initial position: in degrees, or in
    millimeters for prismatic joints."""
    far: ClassVar[Sequence[float]] = (100.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Joint positions that the arm takes several seconds to reach."""
    moment: ClassVar[float] = 0.2
    """Seconds that the move from the initial position to `near` takes."""
    exact: ClassVar[float] = 0.1
    """Tolerance of a joint position, in the units of `near`."""
    exact_mm: ClassVar[float] = 1.0
    """Tolerance of the end position, in millimeters."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.move_to_joint_positions(_to_joint_positions(self.far))  # type: ignore[no-any-return]

    async def test_joints_reach_target(self, resource: Any) -> None:
        await resource.move_to_joint_positions(_to_joint_positions(self.near))
        await self._assert_at(resource, self.near)

    async def test_moves_through_joint_positions(self, resource: Any) -> None:
        start = await _get_joints(resource)
        slowly = MoveOptions(max_vel_degs_per_sec=1000.0)
        with allow_refusal("move_through_joint_positions"):
            await resource.move_through_joint_positions(
                [_to_joint_positions(self.near), _to_joint_positions(start)], slowly
            )
            await self._assert_at(resource, start)
            await resource.move_through_joint_positions([])
            await self._assert_at(resource, start)

    async def test_refuses_invalid_joint_positions(self, resource: Any) -> None:
        start = await _get_joints(resource)
        for wrong in ([*start, 0.0], [], [math.nan for _ in start], [math.inf for _ in start]):
            with pytest.raises(GRPCError) as refused:
                await resource.move_to_joint_positions(_to_joint_positions(wrong))
            assert refused.value.status is Status.INVALID_ARGUMENT
        await self._assert_at(resource, start)

    async def test_refuses_positions_beyond_limits(self, resource: Any) -> None:
        start = await _get_joints(resource)
        for number, limit in enumerate(_upper_limits(await fetch_kinematics(resource))):
            if not math.isfinite(limit):
                continue
            beyond = [*start[:number], limit + 5.0, *start[number + 1 :]]
            with pytest.raises(GRPCError) as refused:
                await resource.move_to_joint_positions(_to_joint_positions(beyond), timeout=TIMEOUT)
            assert refused.value.status is Status.INVALID_ARGUMENT
        await self._assert_at(resource, start)

    async def test_kinematics_match_end_position(self, resource: Any) -> None:
        chain = await fetch_kinematics(resource)
        for joints in (await _get_joints(resource), list(self.near)):
            await resource.move_to_joint_positions(_to_joint_positions(joints))
            values = zip(joints, chain.joints, strict=True)
            inputs = [math.radians(value) if joint.is_rotary else value for value, joint in values]
            end = await resource.get_end_position()
            assert (end.x, end.y, end.z) == pytest.approx(
                chain.pose(inputs).point, abs=self.exact_mm
            )

    async def test_end_reaches_target(self, resource: Any) -> None:
        if not (await resource.get_properties()).support_cartesian_commands:
            await _assert_unimplemented(resource.move_to_position(Pose(x=100, z=100, o_z=1)))
            return
        start = await _get_joints(resource)
        await resource.move_to_joint_positions(_to_joint_positions(self.near))
        wanted = await resource.get_end_position()
        await resource.move_to_joint_positions(_to_joint_positions(start))
        await resource.move_to_position(wanted)
        reached = await resource.get_end_position()
        assert (reached.x, reached.y, reached.z) == pytest.approx(
            (wanted.x, wanted.y, wanted.z), abs=self.exact_mm
        )

    async def test_refuses_unreachable_poses(self, resource: Any) -> None:
        if not (await resource.get_properties()).support_cartesian_commands:
            return
        start = await _get_joints(resource)
        for nowhere in (Pose(x=1e7, o_z=1), Pose(x=math.nan, o_z=1), Pose(theta=math.inf)):
            with pytest.raises(GRPCError) as refused:
                await resource.move_to_position(nowhere)
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert " " in (refused.value.message or "")
        await self._assert_at(resource, start)

    async def test_follows_stream_of_points(self, resource: Any) -> None:
        start = await _get_joints(resource)
        updates = 0
        with allow_refusal("move_through_joint_positions_streamed"):
            async with asyncio.timeout(TIMEOUT):
                batches = _iter_batches(
                    [_make_point(0, start)], [_make_point(self.moment, self.near)]
                )
                async for _ in resource.move_through_joint_positions_streamed(batches):
                    updates += 1
            assert updates
            await self._assert_at(resource, self.near)

    async def test_stops_when_stream_is_cancelled(self, resource: Any) -> None:
        async with self._streaming(resource) as call:
            if call is not None:
                call.cancel()
                await _wait_until_stopped(resource)

    async def test_stop_ends_streamed_move(self, resource: Any) -> None:
        async with self._streaming(resource) as call:
            if call is not None:
                await resource.stop()
                await _wait_until_stopped(resource)
                with allow_refusal("the rest of the stream"):
                    await asyncio.wait_for(call, TIMEOUT)

    async def test_refuses_stream_out_of_order(self, resource: Any) -> None:
        start = await _get_joints(resource)
        late = [_make_point(1, start)]
        back = [_make_point(0, start), _make_point(2, start), _make_point(1, start)]
        short = [_make_point(0, start[1:])]
        for wrong in (late, back, short):
            with pytest.raises(GRPCError) as refused:
                async for _ in resource.move_through_joint_positions_streamed(_iter_batches(wrong)):
                    pass
            assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        await _wait_until_stopped(resource)

    async def test_manual_mode_blocks_moves(self, resource: Any) -> None:
        if not (await resource.get_properties()).support_manual_mode:
            await _assert_unimplemented(resource.set_manual_mode(True))
            return
        await resource.set_manual_mode(True)
        assert await resource.get_manual_mode()
        with pytest.raises(GRPCError) as refused:
            await resource.move_to_joint_positions(_to_joint_positions(self.near))
        assert refused.value.status is Status.FAILED_PRECONDITION
        await resource.set_manual_mode(False)
        assert not await resource.get_manual_mode()
        await resource.move_to_joint_positions(_to_joint_positions(self.near))

    async def test_geometries_are_known_or_refused(self, resource: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await resource.get_geometries(), list)
        with allow_refusal("get_3d_models"):
            assert isinstance(await resource.get_3d_models(), dict)

    async def _assert_at(self, resource: Any, joints: Sequence[float]) -> None:
        assert await _get_joints(resource) == pytest.approx(list(joints), abs=self.exact)
        assert not await resource.is_moving()

    @contextlib.asynccontextmanager
    async def _streaming(self, resource: Any) -> AsyncIterator[asyncio.Task[None] | None]:
        """Stream points back and forth until the block ends.

        Yield the task that streams, or None if the arm does not support streams.
        """
        start = await _get_joints(resource)

        async def follow() -> None:
            batches = _endless_batches(start, self.near, self.moment)
            async for _ in resource.move_through_joint_positions_streamed(batches):
                pass

        call = asyncio.ensure_future(follow())
        try:
            yield call if await _wait_until_moving(resource, call) else None
        finally:
            call.cancel()
            await asyncio.wait([call])


async def _wait_until_moving(resource: Any, call: asyncio.Task[None]) -> bool:
    async with asyncio.timeout(TIMEOUT):
        while not await resource.is_moving():
            if call.done():
                await _assert_unimplemented(call)
                return False
    return True


async def _wait_until_stopped(resource: Any) -> None:
    async with asyncio.timeout(TIMEOUT):
        while await resource.is_moving():
            await asyncio.sleep(0.01)


async def _assert_unimplemented(call: Any) -> None:
    with pytest.raises(GRPCError) as refused:
        await call
    assert refused.value.status is Status.UNIMPLEMENTED
    assert " " in (refused.value.message or "")


async def _get_joints(resource: Any) -> list[float]:
    return list((await resource.get_joint_positions()).values)


def _upper_limits(chain: Chain) -> list[float]:
    return [
        math.degrees(joint.limits.maximum) if joint.is_rotary else joint.limits.maximum
        for joint in chain.joints
    ]


def _to_joint_positions(values: Sequence[float]) -> JointPositions:
    return JointPositions(values=values)


def _make_point(seconds: float, positions: Sequence[float]) -> Arm.TrajectoryPoint:
    return Arm.TrajectoryPoint(time=timedelta(seconds=seconds), positions=list(positions))


async def _iter_batches(*batches: Batch) -> AsyncIterator[Batch]:
    for batch in batches:
        yield batch


async def _endless_batches(
    start: Sequence[float], end: Sequence[float], seconds: float
) -> AsyncIterator[Batch]:
    """Yield points slightly ahead of the arm, as a controller does."""
    yield [_make_point(0, start)]
    for number in range(1, 10_000):
        yield [_make_point(number * seconds, end if number % 2 else start)]
        await asyncio.sleep(seconds / 2)
