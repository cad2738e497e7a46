"""What an arm keeps to."""

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

from cogwork.contracts.contract import PATIENCE, explained
from cogwork.contracts.kinematics import described_by
from cogwork.contracts.moving import MovingContract
from cogwork.spatial.kinematics import Chain

Batch = list[Arm.TrajectoryPoint]


class ArmContract(MovingContract):
    api = "rdk:component:arm"
    client = ArmClient

    near: ClassVar[Sequence[float]] = (2.0, 4.0, 6.0, 0.0, 8.0, 0.0)
    """Joint positions that it reaches within a moment from where it is at first: in degrees, or in
    millimetres if they slide."""
    far: ClassVar[Sequence[float]] = (100.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Joint positions that take it some seconds."""
    moment: ClassVar[float] = 0.2
    """Seconds in which it can get from where it is at first to those that are near."""
    exact: ClassVar[float] = 0.1
    """How far off a joint may be, in the same units."""
    exact_mm: ClassVar[float] = 1.0
    """How far off the end of the arm may be."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.move_to_joint_positions(_joints(self.far))  # type: ignore[no-any-return]

    async def test_its_joints_go_where_they_are_sent(self, it: Any) -> None:
        await it.move_to_joint_positions(_joints(self.near))
        await self._is_at(it, self.near)

    async def test_it_goes_through_positions_to_the_last(self, it: Any) -> None:
        start = await _where(it)
        slowly = MoveOptions(max_vel_degs_per_sec=1000.0)
        with explained("move_through_joint_positions"):
            await it.move_through_joint_positions([_joints(self.near), _joints(start)], slowly)
            await self._is_at(it, start)
            await it.move_through_joint_positions([])
            await self._is_at(it, start)

    async def test_joint_positions_that_cannot_be_are_refused(self, it: Any) -> None:
        start = await _where(it)
        for wrong in ([*start, 0.0], [], [math.nan for _ in start], [math.inf for _ in start]):
            with pytest.raises(GRPCError) as refused:
                await it.move_to_joint_positions(_joints(wrong))
            assert refused.value.status is Status.INVALID_ARGUMENT
        await self._is_at(it, start)

    async def test_it_does_not_go_beyond_its_limits(self, it: Any) -> None:
        start = await _where(it)
        for number, limit in enumerate(_upper_limits(await described_by(it))):
            if not math.isfinite(limit):
                continue
            beyond = [*start[:number], limit + 5.0, *start[number + 1 :]]
            with pytest.raises(GRPCError) as refused:
                await it.move_to_joint_positions(_joints(beyond), timeout=PATIENCE)
            assert refused.value.status is Status.INVALID_ARGUMENT
        await self._is_at(it, start)

    async def test_its_kinematics_say_where_its_end_is(self, it: Any) -> None:
        chain = await described_by(it)
        for joints in (await _where(it), list(self.near)):
            await it.move_to_joint_positions(_joints(joints))
            values = zip(joints, chain.joints, strict=True)
            inputs = [math.radians(value) if joint.turns else value for value, joint in values]
            end = await it.get_end_position()
            assert (end.x, end.y, end.z) == pytest.approx(
                chain.pose(inputs).point, abs=self.exact_mm
            )

    async def test_its_end_goes_where_it_is_sent(self, it: Any) -> None:
        if not (await it.get_properties()).support_cartesian_commands:
            await _lacking(it.move_to_position(Pose(x=100, z=100, o_z=1)))
            return
        start = await _where(it)
        await it.move_to_joint_positions(_joints(self.near))
        wanted = await it.get_end_position()
        await it.move_to_joint_positions(_joints(start))
        await it.move_to_position(wanted)
        reached = await it.get_end_position()
        assert (reached.x, reached.y, reached.z) == pytest.approx(
            (wanted.x, wanted.y, wanted.z), abs=self.exact_mm
        )

    async def test_where_it_cannot_get_it_does_not_go(self, it: Any) -> None:
        if not (await it.get_properties()).support_cartesian_commands:
            return
        start = await _where(it)
        for nowhere in (Pose(x=1e7, o_z=1), Pose(x=math.nan, o_z=1), Pose(theta=math.inf)):
            with pytest.raises(GRPCError) as refused:
                await it.move_to_position(nowhere)
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert " " in (refused.value.message or "")
        await self._is_at(it, start)

    async def test_it_follows_a_stream_of_points(self, it: Any) -> None:
        start = await _where(it)
        updates = 0
        with explained("move_through_joint_positions_streamed"):
            async with asyncio.timeout(PATIENCE):
                batches = _batches([_point(0, start)], [_point(self.moment, self.near)])
                async for _ in it.move_through_joint_positions_streamed(batches):
                    updates += 1
            assert updates
            await self._is_at(it, self.near)

    async def test_it_stops_when_its_stream_is_given_up(self, it: Any) -> None:
        async with self._streaming(it) as call:
            if call is not None:
                call.cancel()
                await _stands(it)

    async def test_it_stops_when_told_to_also_in_a_stream(self, it: Any) -> None:
        async with self._streaming(it) as call:
            if call is not None:
                await it.stop()
                await _stands(it)
                with explained("the rest of the stream"):
                    await asyncio.wait_for(call, PATIENCE)

    async def test_a_stream_out_of_order_is_refused(self, it: Any) -> None:
        start = await _where(it)
        late = [_point(1, start)]
        back = [_point(0, start), _point(2, start), _point(1, start)]
        short = [_point(0, start[1:])]
        for wrong in (late, back, short):
            with pytest.raises(GRPCError) as refused:
                async for _ in it.move_through_joint_positions_streamed(_batches(wrong)):
                    pass
            assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
        await _stands(it)

    async def test_by_hand_it_is_moved_by_nothing_else(self, it: Any) -> None:
        if not (await it.get_properties()).support_manual_mode:
            await _lacking(it.set_manual_mode(True))
            return
        await it.set_manual_mode(True)
        assert await it.get_manual_mode()
        with pytest.raises(GRPCError) as refused:
            await it.move_to_joint_positions(_joints(self.near))
        assert refused.value.status is Status.FAILED_PRECONDITION
        await it.set_manual_mode(False)
        assert not await it.get_manual_mode()
        await it.move_to_joint_positions(_joints(self.near))

    async def test_its_shape_is_known_or_it_says_why_not(self, it: Any) -> None:
        with explained("get_geometries"):
            assert isinstance(await it.get_geometries(), list)
        with explained("get_3d_models"):
            assert isinstance(await it.get_3d_models(), dict)

    async def _is_at(self, it: Any, joints: Sequence[float]) -> None:
        assert await _where(it) == pytest.approx(list(joints), abs=self.exact)
        assert not await it.is_moving()

    @contextlib.asynccontextmanager
    async def _streaming(self, it: Any) -> AsyncIterator[asyncio.Task[None] | None]:
        """On its way, back and forth without an end; None, where it has no streams."""
        start = await _where(it)

        async def follow() -> None:
            batches = _endless(start, self.near, self.moment)
            async for _ in it.move_through_joint_positions_streamed(batches):
                pass

        call = asyncio.ensure_future(follow())
        try:
            yield call if await _begun(it, call) else None
        finally:
            call.cancel()
            await asyncio.wait([call])


async def _begun(it: Any, call: asyncio.Task[None]) -> bool:
    async with asyncio.timeout(PATIENCE):
        while not await it.is_moving():
            if call.done():
                await _lacking(call)
                return False
    return True


async def _stands(it: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while await it.is_moving():
            await asyncio.sleep(0.01)


async def _lacking(call: Any) -> None:
    with pytest.raises(GRPCError) as refused:
        await call
    assert refused.value.status is Status.UNIMPLEMENTED
    assert " " in (refused.value.message or "")


async def _where(it: Any) -> list[float]:
    return list((await it.get_joint_positions()).values)


def _upper_limits(chain: Chain) -> list[float]:
    return [
        math.degrees(joint.limits.maximum) if joint.turns else joint.limits.maximum
        for joint in chain.joints
    ]


def _joints(values: Sequence[float]) -> JointPositions:
    return JointPositions(values=values)


def _point(seconds: float, positions: Sequence[float]) -> Arm.TrajectoryPoint:
    return Arm.TrajectoryPoint(time=timedelta(seconds=seconds), positions=list(positions))


async def _batches(*batches: Batch) -> AsyncIterator[Batch]:
    for batch in batches:
        yield batch


async def _endless(
    start: Sequence[float], end: Sequence[float], seconds: float
) -> AsyncIterator[Batch]:
    """A bit ahead of the arm, as whoever controls one would be."""
    yield [_point(0, start)]
    for number in range(1, 10_000):
        yield [_point(number * seconds, end if number % 2 else start)]
        await asyncio.sleep(seconds / 2)
