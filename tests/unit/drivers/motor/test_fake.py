from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.served import Serve, refused, until
from tests.unit.drivers.moving import moved
from viam.components.motor.client import MotorClient

from cogwork.core.clock import ManualClock, SystemClock, Waitable
from cogwork.core.errors import Interrupted
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:motor/m")


@pytest.fixture
async def motor(clock: ManualClock) -> FakeMotor:
    return await FakeMotor.new(NAME, FakeMotorAttributes(max_rpm=120), {}, clock)


@pytest.fixture
async def client(motor: FakeMotor, serve: Serve) -> AsyncIterator[MotorClient]:
    async with serve(motor) as channel:
        yield MotorClient("m", channel)


async def test_power_turns_it(client: MotorClient, clock: ManualClock) -> None:
    await client.set_power(-0.5)
    assert await client.is_powered() == (True, -0.5)
    assert await client.is_moving()
    await clock.advance(3)
    assert await client.get_position() == pytest.approx(-3)


async def test_a_speed_turns_it_until_it_is_stopped(
    client: MotorClient, clock: ManualClock
) -> None:
    await client.set_rpm(60)
    await clock.advance(2)
    await client.stop()
    await clock.advance(100)
    assert await client.get_position() == pytest.approx(2)
    assert await client.is_powered() == (False, 0)
    assert not await client.is_moving()


def standing(client: MotorClient) -> Callable[[], Awaitable[bool]]:
    async def it_stands() -> bool:
        return not await client.is_moving()

    return it_stands


@pytest.mark.parametrize(
    ("rpm", "revolutions", "reached"), [(60, 2, 2), (-60, 2, -2), (60, -2, -2), (-60, -2, 2)]
)
async def test_it_goes_for_some_revolutions(
    client: MotorClient, clock: ManualClock, rpm: float, revolutions: float, reached: float
) -> None:
    await moved(client, clock, client.go_for(rpm, revolutions), 2)
    assert await client.get_position() == reached


async def test_it_goes_to_a_position_whichever_sign_the_speed_has(
    client: MotorClient, clock: ManualClock
) -> None:
    await moved(client, clock, client.go_to(-30, 0.1), 0.2)
    assert await client.get_position() == 0.1
    await moved(client, clock, client.go_to(30, -0.9), 2)
    assert await client.get_position() == -0.9


async def test_it_is_at_once_where_it_is(client: MotorClient) -> None:
    await client.go_to(60, 0, timeout=10)
    assert not await client.is_moving()


async def test_a_move_takes_real_time_by_the_clock_of_the_machine() -> None:
    motor = await FakeMotor.new(NAME, FakeMotorAttributes(max_rpm=6000), {})
    before = SystemClock().monotonic()
    await motor.go_for(6000, 2)
    assert SystemClock().monotonic() - before >= 0.0199
    assert await motor.get_position() == 2


class EarlyClock(ManualClock):
    """Rings ahead of time; loops that count milliseconds do so by a part of one."""

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        assert timeout is not None
        await super().wait(waitables, 0)


async def test_a_timer_that_rings_early_does_not_leave_it_turning() -> None:
    motor = await FakeMotor.new(NAME, FakeMotorAttributes(), {}, EarlyClock())
    await motor.go_for(60, 2)
    assert not await motor.is_moving()
    assert await motor.get_position() == 2


@pytest.mark.parametrize(
    ("ending", "position"),
    [("set_power", 3), ("set_rpm", 3), ("stop", 1)],
)
async def test_a_newer_command_ends_a_move(
    client: MotorClient, clock: ManualClock, ending: str, position: float
) -> None:
    commands: dict[str, Callable[[], Awaitable[None]]] = {
        "set_power": lambda: client.set_power(1),
        "set_rpm": lambda: client.set_rpm(120),
        "stop": client.stop,
    }
    move = asyncio.ensure_future(client.go_for(60, 10))
    await until(client.is_moving)
    await clock.advance(1)
    await commands[ending]()
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert told.status is Status.ABORTED
    assert told.words == f'motor "m" did not finish go_for: interrupted by {ending}'
    await clock.advance(1)
    assert await client.get_position() == pytest.approx(position)


async def test_the_newer_of_two_moves_is_finished(client: MotorClient, clock: ManualClock) -> None:
    older = asyncio.ensure_future(client.go_for(60, 10))
    await until(client.is_moving)
    newer = asyncio.ensure_future(client.go_to(120, -1))
    with refused() as told:
        await asyncio.wait_for(older, 10)
    assert "interrupted by go_to" in told.words
    await clock.advance(0.5)
    await asyncio.wait_for(newer, 10)
    assert await client.get_position() == -1


async def test_closing_it_ends_a_move_and_stops_it(motor: FakeMotor, clock: ManualClock) -> None:
    move = asyncio.ensure_future(motor.go_for(60, 10))
    await clock.settle()
    await motor.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move
    assert not await motor.is_moving()
    await motor.close()


async def test_when_the_client_is_gone_it_stops(client: MotorClient, clock: ManualClock) -> None:
    move = asyncio.ensure_future(client.go_for(60, 10))
    await until(client.is_moving)
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await until(standing(client))
    assert await client.get_position() == pytest.approx(1)


async def test_a_deadline_stops_it(client: MotorClient) -> None:
    with pytest.raises((GRPCError, TimeoutError)):
        await client.go_for(60, 10, timeout=0.05)
    await until(standing(client))


async def test_a_cancelled_move_leaves_the_newer_command_alone(
    motor: FakeMotor, clock: ManualClock
) -> None:
    move = asyncio.ensure_future(motor.go_for(60, 10))
    await clock.settle()
    await motor.set_rpm(30)
    move.cancel()
    await asyncio.wait([move])
    assert move.cancelled()
    assert await motor.is_powered() == (True, 0.25)


@pytest.mark.parametrize("power", [1.01, -1.01, math.nan, math.inf])
async def test_there_is_no_more_than_all_of_its_power(client: MotorClient, power: float) -> None:
    with refused() as told:
        await client.set_power(power)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == f'motor "m" accepts a power between -1 and 1, not {power:g}'


@pytest.mark.parametrize("rpm", [121, -121, math.nan])
async def test_it_has_a_highest_speed(client: MotorClient, rpm: float) -> None:
    for call in (client.set_rpm(rpm), client.go_for(rpm, 1), client.go_to(rpm, 1)):
        with refused() as told:
            await call
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words == f'motor "m" turns at 120 rpm at most, not at {rpm:g}'


async def test_a_move_needs_a_speed(client: MotorClient) -> None:
    with refused() as told:
        await client.go_to(0, 1)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'motor "m" does not move at 0 rpm: give go_to a nonzero speed'


@pytest.mark.parametrize("revolutions", [0, math.nan, math.inf])
async def test_a_move_needs_an_end(client: MotorClient, revolutions: float) -> None:
    with refused() as told:
        await client.go_for(60, revolutions)
    assert told.status is Status.INVALID_ARGUMENT
    assert f"cannot go for {revolutions:g} revolutions" in told.words
    assert "set_rpm" in told.words


async def test_nowhere_is_no_position(client: MotorClient) -> None:
    for call in (client.go_to(60, math.inf), client.reset_zero_position(math.nan)):
        with refused() as told:
            await call
        assert told.status is Status.INVALID_ARGUMENT


async def test_what_is_refused_changes_nothing(client: MotorClient) -> None:
    await client.set_power(0.5)
    with refused():
        await client.go_for(500, 1)
    assert await client.is_powered() == (True, 0.5)


async def test_its_zero_can_be_moved(client: MotorClient, clock: ManualClock) -> None:
    await client.set_rpm(60)
    await clock.advance(5)
    await client.reset_zero_position(1.5)
    assert await client.get_position() == pytest.approx(-1.5)
    await clock.advance(1)
    assert await client.get_position() == pytest.approx(-0.5)


async def test_it_tells_about_itself(client: MotorClient) -> None:
    await client.set_rpm(-60)
    assert (await client.get_properties()).position_reporting
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "is_moving": True,
        "is_powered": True,
        "position": 0,
        "power": -0.5,
        "rpm": -60,
    }


async def test_without_a_position_it_goes_by_time(serve: Serve, clock: ManualClock) -> None:
    attributes = FakeMotorAttributes(position_reporting=False)
    motor = await FakeMotor.new(NAME, attributes, {}, clock)
    async with serve(motor) as channel:
        client = MotorClient("m", channel)
        assert not (await client.get_properties()).position_reporting
        await moved(client, clock, client.go_for(60, 2), 2)
        assert "position" not in await client.get_status()
        for call in (client.get_position(), client.go_to(60, 1), client.reset_zero_position(0)):
            with refused() as told:
                await call
            assert told.status is Status.UNIMPLEMENTED
            assert "does not report its position" in told.words
