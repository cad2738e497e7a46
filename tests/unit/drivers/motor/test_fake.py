from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Collection

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from tests.unit.drivers.moving import complete_move
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


async def test_set_power_turns_the_motor(client: MotorClient, clock: ManualClock) -> None:
    await client.set_power(-0.5)
    assert await client.is_powered() == (True, -0.5)
    assert await client.is_moving()
    await clock.advance(3)
    assert await client.get_position() == pytest.approx(-3)


async def test_set_rpm_turns_the_motor_until_stop(client: MotorClient, clock: ManualClock) -> None:
    await client.set_rpm(60)
    await clock.advance(2)
    await client.stop()
    await clock.advance(100)
    assert await client.get_position() == pytest.approx(2)
    assert await client.is_powered() == (False, 0)
    assert not await client.is_moving()


def is_still(client: MotorClient) -> Callable[[], Awaitable[bool]]:
    async def is_still_now() -> bool:
        return not await client.is_moving()

    return is_still_now


@pytest.mark.parametrize(
    ("rpm", "revolutions", "reached"), [(60, 2, 2), (-60, 2, -2), (60, -2, -2), (-60, -2, 2)]
)
async def test_go_for_turns_by_the_revolutions(
    client: MotorClient, clock: ManualClock, rpm: float, revolutions: float, reached: float
) -> None:
    await complete_move(client, clock, client.go_for(rpm, revolutions), 2)
    assert await client.get_position() == reached


async def test_go_to_reaches_the_position_whatever_the_sign_of_the_speed(
    client: MotorClient, clock: ManualClock
) -> None:
    await complete_move(client, clock, client.go_to(-30, 0.1), 0.2)
    assert await client.get_position() == 0.1
    await complete_move(client, clock, client.go_to(30, -0.9), 2)
    assert await client.get_position() == -0.9


async def test_go_to_the_current_position_returns_at_once(client: MotorClient) -> None:
    await client.go_to(60, 0, timeout=10)
    assert not await client.is_moving()


async def test_move_takes_real_time_with_the_system_clock() -> None:
    motor = await FakeMotor.new(NAME, FakeMotorAttributes(max_rpm=6000), {})
    before = SystemClock().monotonic()
    await motor.go_for(6000, 2)
    assert SystemClock().monotonic() - before >= 0.0199
    assert await motor.get_position() == 2


class EarlyClock(ManualClock):
    """Its timers fire early, by a fraction of the resolution of a real event loop."""

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        assert timeout is not None
        await super().wait(waitables, 0)


async def test_early_timer_does_not_leave_the_motor_turning() -> None:
    motor = await FakeMotor.new(NAME, FakeMotorAttributes(), {}, EarlyClock())
    await motor.go_for(60, 2)
    assert not await motor.is_moving()
    assert await motor.get_position() == 2


@pytest.mark.parametrize(
    ("ending", "position"),
    [("set_power", 3), ("set_rpm", 3), ("stop", 1)],
)
async def test_newer_command_interrupts_a_move(
    client: MotorClient, clock: ManualClock, ending: str, position: float
) -> None:
    commands: dict[str, Callable[[], Awaitable[None]]] = {
        "set_power": lambda: client.set_power(1),
        "set_rpm": lambda: client.set_rpm(120),
        "stop": client.stop,
    }
    move = asyncio.ensure_future(client.go_for(60, 10))
    await poll(client.is_moving)
    await clock.advance(1)
    await commands[ending]()
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert told.status is Status.ABORTED
    assert told.words == f'motor "m" did not finish go_for: interrupted by {ending}'
    await clock.advance(1)
    assert await client.get_position() == pytest.approx(position)


async def test_newer_of_two_moves_finishes(client: MotorClient, clock: ManualClock) -> None:
    older = asyncio.ensure_future(client.go_for(60, 10))
    await poll(client.is_moving)
    newer = asyncio.ensure_future(client.go_to(120, -1))
    with refused() as told:
        await asyncio.wait_for(older, 10)
    assert "interrupted by go_to" in told.words
    await clock.advance(0.5)
    await asyncio.wait_for(newer, 10)
    assert await client.get_position() == -1


async def test_close_interrupts_a_move_and_stops_the_motor(
    motor: FakeMotor, clock: ManualClock
) -> None:
    move = asyncio.ensure_future(motor.go_for(60, 10))
    await clock.settle()
    await motor.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move
    assert not await motor.is_moving()
    await motor.close()


async def test_move_stops_when_the_client_cancels(client: MotorClient, clock: ManualClock) -> None:
    move = asyncio.ensure_future(client.go_for(60, 10))
    await poll(client.is_moving)
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await poll(is_still(client))
    assert await client.get_position() == pytest.approx(1)


async def test_move_stops_when_the_deadline_expires(client: MotorClient) -> None:
    with pytest.raises((GRPCError, TimeoutError)):
        await client.go_for(60, 10, timeout=0.05)
    await poll(is_still(client))


async def test_cancelled_move_does_not_affect_the_newer_command(
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
async def test_power_beyond_full_scale_is_refused(client: MotorClient, power: float) -> None:
    with refused() as told:
        await client.set_power(power)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == f'motor "m" accepts a power between -1 and 1, not {power:g}'


@pytest.mark.parametrize("rpm", [121, -121, math.nan])
async def test_speed_beyond_the_maximum_is_refused(client: MotorClient, rpm: float) -> None:
    for call in (client.set_rpm(rpm), client.go_for(rpm, 1), client.go_to(rpm, 1)):
        with refused() as told:
            await call
        assert told.status is Status.INVALID_ARGUMENT
        assert told.words == f'motor "m" turns at 120 rpm at most, not at {rpm:g}'


async def test_move_without_speed_is_refused(client: MotorClient) -> None:
    with refused() as told:
        await client.go_to(0, 1)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'motor "m" does not move at 0 rpm: give go_to a nonzero speed'


@pytest.mark.parametrize("revolutions", [0, math.nan, math.inf])
async def test_go_for_without_a_finite_distance_is_refused(
    client: MotorClient, revolutions: float
) -> None:
    with refused() as told:
        await client.go_for(60, revolutions)
    assert told.status is Status.INVALID_ARGUMENT
    assert f"cannot go for {revolutions:g} revolutions" in told.words
    assert "set_rpm" in told.words


async def test_infinite_positions_are_refused(client: MotorClient) -> None:
    for call in (client.go_to(60, math.inf), client.reset_zero_position(math.nan)):
        with refused() as told:
            await call
        assert told.status is Status.INVALID_ARGUMENT


async def test_refused_command_leaves_the_motor_unchanged(client: MotorClient) -> None:
    await client.set_power(0.5)
    with refused():
        await client.go_for(500, 1)
    assert await client.is_powered() == (True, 0.5)


async def test_reset_zero_position_shifts_positions(
    client: MotorClient, clock: ManualClock
) -> None:
    await client.set_rpm(60)
    await clock.advance(5)
    await client.reset_zero_position(1.5)
    assert await client.get_position() == pytest.approx(-1.5)
    await clock.advance(1)
    assert await client.get_position() == pytest.approx(-0.5)


async def test_properties_and_status_of_the_motor(client: MotorClient) -> None:
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


async def test_motor_without_position_reporting_moves_by_time(
    serve: Serve, clock: ManualClock
) -> None:
    attributes = FakeMotorAttributes(position_reporting=False)
    motor = await FakeMotor.new(NAME, attributes, {}, clock)
    async with serve(motor) as channel:
        client = MotorClient("m", channel)
        assert not (await client.get_properties()).position_reporting
        await complete_move(client, clock, client.go_for(60, 2), 2)
        assert "position" not in await client.get_status()
        for call in (client.get_position(), client.go_to(60, 1), client.reset_zero_position(0)):
            with refused() as told:
                await call
            assert told.status is Status.UNIMPLEMENTED
            assert "does not report its position" in told.words
