"""Streamed trajectories, called by the SDK's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.support.waiting import poll, run_others
from tests.unit.drivers.moving import wait_until_still
from viam.components.arm import Arm
from viam.components.arm.client import ArmClient
from viam.gen.component.arm.v1 import arm_pb2 as messages
from viam.proto.component.arm import JointPositions

from cogwork.core.clock import ManualClock
from cogwork.drivers.arm.streamed_trajectory import (
    MAX_POINTS_AHEAD,
    StreamedTrajectory,
    seconds_until_room,
)
from cogwork.drivers.joint_trajectory import JointTrajectory
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:arm/a")

Batch = list[Arm.TrajectoryPoint]
Request = messages.MoveThroughJointPositionsStreamedRequest


def point(seconds: float, read_waist: float) -> Arm.TrajectoryPoint:
    return Arm.TrajectoryPoint(timedelta(seconds=seconds), [read_waist, 0, 0, 0, 0, 0])


async def read_waist(client: ArmClient) -> float:
    return (await client.get_joint_positions()).values[0]


class Sender:
    """A client that streams a trajectory in batches."""

    def __init__(self, client: ArmClient) -> None:
        self.updates = 0
        self._queue: asyncio.Queue[Batch | Exception | None] = asyncio.Queue(100)
        self._client = client
        self.call = asyncio.ensure_future(self._follow())

    async def send(self, *points: Arm.TrajectoryPoint) -> None:
        """Send the batch and wait until the arm confirms it."""
        wanted = self.updates + 1
        await self._queue.put(list(points))
        await poll(lambda: self._has(wanted))

    async def end(self) -> None:
        await self._queue.put(None)

    async def fail(self, error: Exception) -> None:
        await self._queue.put(error)

    async def done(self) -> None:
        await asyncio.wait_for(self.call, 10)

    async def _has(self, wanted: int) -> bool:
        if self.call.done():
            self.call.result()
        await run_others()
        return self.updates >= wanted

    async def _follow(self) -> None:
        async for _ in self._client.move_through_joint_positions_streamed(self._batches()):
            self.updates += 1

    async def _batches(self) -> AsyncIterator[Batch]:
        while (batch := await self._queue.get()) is not None:
            if isinstance(batch, Exception):
                raise batch
            yield batch


@pytest.fixture
async def sender(client: ArmClient) -> AsyncIterator[Sender]:
    sender = Sender(client)
    yield sender
    sender.call.cancel()
    await asyncio.wait([sender.call])
    del sender.call  # its error keeps the connection


async def test_arm_reaches_each_point_at_its_time(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(1, 10))
    await clock.advance(0.5)
    assert await read_waist(client) == pytest.approx(5)
    await sender.send(point(3, 0))
    await clock.advance(1.5)
    assert await read_waist(client) == pytest.approx(5)
    await sender.end()
    await clock.advance(0.9)
    assert await client.is_moving()
    assert not sender.call.done()
    await clock.advance(0.1)
    await sender.done()
    assert sender.updates == 2
    assert await read_waist(client) == 0
    assert not await client.is_moving()


async def test_arm_waits_for_a_late_batch(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0))
    await clock.advance(5)
    await sender.send(point(1, 10))
    await clock.advance(3)
    assert await read_waist(client) == 10
    assert not await client.is_moving()
    await sender.send(point(2, 20))
    await clock.advance(0.5)
    assert await read_waist(client) == pytest.approx(15)
    await sender.end()
    await clock.advance(0.5)
    await sender.done()
    assert await read_waist(client) == 20


async def test_stream_without_points_leaves_the_arm_in_place(
    client: ArmClient, sender: Sender
) -> None:
    await sender.end()
    await sender.done()
    assert sender.updates == 1
    assert await read_waist(client) == 0


async def test_cancelled_stream_stops_the_arm(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(10, 100))
    await clock.advance(1)
    sender.call.cancel()
    await wait_until_still(client)
    assert await read_waist(client) == pytest.approx(10)


async def test_closing_the_update_iterator_stops_the_arm(
    client: ArmClient, clock: ManualClock
) -> None:
    async def batches() -> AsyncIterator[Batch]:
        yield [point(0, 0), point(10, 100)]
        await asyncio.Event().wait()

    updates = client.move_through_joint_positions_streamed(batches())
    await anext(updates)
    await clock.advance(1)
    assert await client.is_moving()
    await updates.aclose()  # type: ignore[attr-defined]
    await wait_until_still(client)
    assert await read_waist(client) == pytest.approx(10)


async def test_error_in_the_clients_point_source_stops_the_arm(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(10, 100))
    await clock.advance(1)
    await sender.fail(LookupError("out of points"))
    with pytest.raises(LookupError, match="out of points"):
        await sender.done()
    await wait_until_still(client)


async def test_stop_interrupts_a_stream(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(10, 100))
    await clock.advance(1)
    await client.stop()
    with refused() as told:
        await sender.done()
    assert told.status is Status.ABORTED
    assert told.words == (
        'arm "a" did not finish move_through_joint_positions_streamed: interrupted by stop'
    )
    assert await read_waist(client) == pytest.approx(10)


async def test_newer_move_interrupts_a_stream(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(10, 100))
    await clock.advance(1)
    move = asyncio.ensure_future(
        client.move_to_joint_positions(JointPositions(values=[0, 0, 0, 0, 0, 0]))
    )
    with refused() as told:
        await sender.done()
    assert "interrupted by move_to_joint_positions" in told.words
    await clock.advance(1)
    await asyncio.wait_for(move, 10)
    assert await read_waist(client) == 0


async def test_stream_stops_when_the_deadline_expires(client: ArmClient) -> None:
    async def batches() -> AsyncIterator[Batch]:
        yield [point(0, 0), point(10, 100)]
        await asyncio.Event().wait()

    with pytest.raises(Exception, match=r"(?i)deadline|^$"):
        async for _ in client.move_through_joint_positions_streamed(batches(), timeout=0.2):
            pass
    await wait_until_still(client)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([point(1, 0)], "the first point of a trajectory must be at 0 s, not at 1 s"),
        ([point(0, 0), point(2, 0), point(2, 0)], "the point at 2 s follows one at 2 s"),
        ([point(0, 20)], "the trajectory starts with joint 1 at 20, but the joint is at 0"),
        ([point(0, 0), point(1, 11)], "joint 1 cannot go from 0 to 11 within 1 seconds"),
        ([point(0, 0), point(99, 171)], 'joint "waist" of "desk_arm" cannot move to 171 degrees'),
        ([point(0, 0), point(1, float("nan"))], 'joint "waist" of "desk_arm" cannot move to nan'),
        ([Arm.TrajectoryPoint(timedelta(), [])], "the point at 0 s has no joint positions"),
        ([Arm.TrajectoryPoint(timedelta(), [0.0])], "takes 6 joint positions, not 1"),
    ],
)
async def test_invalid_points_are_refused(
    client: ArmClient, sender: Sender, points: Batch, words: str
) -> None:
    with refused() as told:
        await sender.send(*points)
    assert told.status is Status.INVALID_ARGUMENT
    assert words in told.words
    assert await read_waist(client) == 0


async def test_invalid_point_in_a_later_batch_stops_the_arm(
    client: ArmClient, sender: Sender, clock: ManualClock
) -> None:
    await sender.send(point(0, 0), point(10, 100))
    await clock.advance(1)
    with refused() as told:
        await sender.send(point(11, 100), point(12, 0))
    assert told.status is Status.INVALID_ARGUMENT
    await wait_until_still(client)
    assert await read_waist(client) == pytest.approx(10)


def point_with_constraints(
    velocities: list[float], accelerations: list[float] | None = None
) -> Arm.TrajectoryPoint:
    constraints = Arm.KinematicConstraints(velocities, accelerations)
    return Arm.TrajectoryPoint(timedelta(), [0.0] * 6, constraints)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (point_with_constraints([0.0] * 5), "its constraints must have 6 velocities"),
        (point_with_constraints([0.0] * 6, [0.0]), "and 6 accelerations or none"),
        (point_with_constraints([0.0] * 5 + [1.0]), "a trajectory must begin at rest"),
    ],
)
async def test_invalid_constraints_are_refused(
    sender: Sender, wrong: Arm.TrajectoryPoint, words: str
) -> None:
    with refused() as told:
        await sender.send(wrong)
    assert told.status is Status.INVALID_ARGUMENT
    assert words in told.words


async def test_stream_is_refused_in_manual_mode(client: ArmClient) -> None:
    await client.set_manual_mode(True)
    sender = Sender(client)
    with refused() as told:
        await sender.done()
    assert told.status is Status.FAILED_PRECONDITION


def test_trajectory_buffers_a_limited_number_of_points() -> None:
    trajectory = StreamedTrajectory(tuple, speed=10)
    course = JointTrajectory.at_rest((0.0,), 100)
    for number in range(2):
        batch = [
            Arm.TrajectoryPoint(timedelta(seconds=each), [0.0])
            for each in range(number * MAX_POINTS_AHEAD, (number + 1) * MAX_POINTS_AHEAD)
        ]
        course = trajectory.extend(course, batch, 100)
    assert seconds_until_room(JointTrajectory.at_rest((0.0,), 100), 100) == 0
    assert seconds_until_room(course, 100) == MAX_POINTS_AHEAD
    assert seconds_until_room(course, 100 + MAX_POINTS_AHEAD) == 0
