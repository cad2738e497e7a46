from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused, until
from viam.components.base import Vector3
from viam.components.base.client import BaseClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError, Interrupted
from cogwork.drivers.base.attributes import WheeledBaseAttributes
from cogwork.drivers.base.wheeled import WheeledBase
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:base/b")
ATTRIBUTES = {
    "left": ["l1", "l2"],
    "right": ["r1", "r2"],
    "width_mm": 400,
    "wheel_circumference_mm": 200,
    "spin_slip_factor": 1.5,
}
STILL = Vector3()

Motors = dict[str, FakeMotor]


@pytest.fixture
async def motors(clock: ManualClock) -> Motors:
    return {name: await _motor(name, clock) for name in ("l1", "l2", "r1", "r2")}


async def _motor(name: str, clock: ManualClock) -> FakeMotor:
    full = ResourceName.parse(f"rdk:component:motor/{name}")
    return await FakeMotor.new(full, FakeMotorAttributes(max_rpm=240), {}, clock)


async def base_on(motors: dict[str, Any]) -> WheeledBase:
    found = {ResourceName.parse(f"rdk:component:motor/{name}"): m for name, m in motors.items()}
    return await WheeledBase.new(NAME, WheeledBaseAttributes.model_validate(ATTRIBUTES), found)


@pytest.fixture
async def base(motors: Motors) -> WheeledBase:
    return await base_on(motors)


@pytest.fixture
async def client(base: WheeledBase, serve: Serve) -> AsyncIterator[BaseClient]:
    async with serve(base) as channel:
        yield BaseClient("b", channel)


async def turned(motors: Motors) -> list[float]:
    return [await motor.get_position() for motor in motors.values()]


async def powers(motors: Motors) -> list[float]:
    return [(await motor.is_powered())[1] for motor in motors.values()]


@pytest.mark.parametrize(("distance", "velocity", "sign"), [(400, 200, 1), (400, -200, -1)])
async def test_it_drives_straight(
    client: BaseClient,
    motors: Motors,
    clock: ManualClock,
    distance: int,
    velocity: float,
    sign: float,
) -> None:
    moving = asyncio.ensure_future(client.move_straight(distance, velocity))
    await until(client.is_moving)
    await clock.advance(2)
    await asyncio.wait_for(moving, 10)
    assert await turned(motors) == [2 * sign] * 4
    assert not await client.is_moving()


async def test_it_spins_to_the_left(client: BaseClient, motors: Motors, clock: ManualClock) -> None:
    moving = asyncio.ensure_future(client.spin(180, 90))
    await until(client.is_moving)
    await clock.advance(2)
    await asyncio.wait_for(moving, 10)
    # Half the circle of the wheels, and half as much again because they slip.
    far = math.pi * 200 * 1.5 / 200
    assert await turned(motors) == pytest.approx([-far, -far, far, far])


@pytest.mark.parametrize(
    ("linear", "angular", "left", "right"),
    [
        (0.5, 0, 0.5, 0.5),
        (0, 0.5, -0.5, 0.5),
        (0.5, 0.25, 0.25, 0.75),
        (1, -1, 1, 0),
        (1, 0.5, 1 / 3, 1),
    ],
)
async def test_power_for_each_side(
    client: BaseClient, motors: Motors, linear: float, angular: float, left: float, right: float
) -> None:
    await client.set_power(Vector3(y=linear), Vector3(z=angular))
    assert await powers(motors) == pytest.approx([left, left, right, right])


async def test_velocities_for_each_side(
    client: BaseClient, motors: Motors, clock: ManualClock
) -> None:
    await client.set_velocity(Vector3(y=200), Vector3(z=math.degrees(0.5)))
    await clock.advance(2)
    # 200 mm/s, and half a radian per second at 200 mm from the middle, with the slip.
    assert await turned(motors) == pytest.approx([0.5, 0.5, 3.5, 3.5])
    await client.set_velocity(STILL, STILL)
    assert await powers(motors) == [0] * 4


async def test_it_stops_all_motors(client: BaseClient, motors: Motors) -> None:
    moving = asyncio.ensure_future(client.move_straight(1000, 100))
    await until(client.is_moving)
    await client.stop()
    assert await powers(motors) == [0] * 4
    with refused() as told:
        await asyncio.wait_for(moving, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'base "b" did not finish move_straight: interrupted by stop'


async def test_a_stop_comes_after_what_was_just_told(base: WheeledBase, motors: Motors) -> None:
    """However the two are interleaved."""
    for turns in range(1, 9):
        rolling = asyncio.ensure_future(base.set_power(Vector3(y=1), STILL))
        for _ in range(turns):
            await asyncio.sleep(0)
        await base.stop()
        await asyncio.wait([rolling])
        assert await powers(motors) == [0] * 4, f"after {turns} turns of the loop"
        assert isinstance(rolling.exception(), Interrupted | None)


async def test_the_newest_command_has_it(base: WheeledBase, motors: Motors) -> None:
    commands = [asyncio.ensure_future(base.move_straight(1000, 100)) for _ in range(3)]
    await asyncio.sleep(0)
    await base.set_power(Vector3(y=0.5), STILL)
    for command in commands:
        with pytest.raises(Interrupted, match="did not finish move_straight"):
            await command
    assert await powers(motors) == [0.5] * 4


async def test_who_leaves_leaves_it_standing(client: BaseClient, motors: Motors) -> None:
    moving = asyncio.ensure_future(client.spin(180, 9))
    await until(client.is_moving)
    moving.cancel()

    async def stands() -> bool:
        return not await client.is_moving()

    await until(stands)
    assert await powers(motors) == [0] * 4
    await asyncio.wait([moving])


async def test_what_one_motor_cannot_none_does(client: BaseClient, motors: Motors) -> None:
    with refused() as told:
        await client.move_straight(100, 10_000)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words.endswith("turns at 240 rpm at most, not at 3000")
    assert await powers(motors) == [0] * 4


async def test_a_motor_that_somebody_else_takes_ends_the_move(
    base: WheeledBase, motors: Motors, clock: ManualClock
) -> None:
    moving = asyncio.ensure_future(base.move_straight(1000, 100))
    await clock.settle()
    await motors["r1"].set_power(0.1)
    with pytest.raises(
        Interrupted, match='motor "r1" did not finish go_for: interrupted by set_power'
    ):
        await moving
    assert await powers(motors) == [0] * 4


class Jammed(CogworkError):
    pass


async def test_one_that_cannot_be_stopped_does_not_keep_the_others_going(motors: Motors) -> None:
    class JammedMotor(FakeMotor):
        async def stop(self, **_: Any) -> None:
            raise Jammed("the brake is stuck")

    jammed = JammedMotor(
        ResourceName.parse("rdk:component:motor/l1"), FakeMotorAttributes(), ManualClock()
    )
    base = await base_on({**motors, "l1": jammed})
    await base.set_power(Vector3(y=0.5), STILL)
    with pytest.raises(Jammed):
        await base.stop()
    assert (await powers(motors))[1:] == [0] * 3


async def test_closing_it_stops_what_it_moves(base: WheeledBase, motors: Motors) -> None:
    await base.set_power(Vector3(y=0.5), STILL)
    await base.close()
    assert await powers(motors) == [0] * 4


class SlowMotor(FakeMotor):
    """Does at once what it is told, but says so only when it is let."""

    def __init__(self, clock: ManualClock, slow: str) -> None:
        name = ResourceName.parse("rdk:component:motor/l1")
        super().__init__(name, FakeMotorAttributes(max_rpm=240), clock)
        self.slow = slow
        self.gate = asyncio.Event()

    async def set_power(self, power: float, **_: Any) -> None:
        await super().set_power(power)
        if self.slow == "set_power":
            # Not even when nobody wants to know any more.
            with contextlib.suppress(asyncio.CancelledError):
                await self.gate.wait()
            await self.gate.wait()

    async def stop(self, **_: Any) -> None:
        await super().stop()
        if self.slow == "stop":
            await self.gate.wait()


async def test_driven_while_a_stop_ends_it_is_not_at_rest(
    motors: Motors, clock: ManualClock
) -> None:
    slow = SlowMotor(clock, "stop")
    base = await base_on({**motors, "l1": slow})
    await base.set_power(Vector3(y=1), STILL)
    stop = asyncio.ensure_future(base.stop())
    await clock.settle()
    await base.set_power(Vector3(y=0.5), STILL)
    slow.gate.set()
    await stop
    assert await powers({**motors, "l1": slow}) == [0.5] * 4
    await base.close()
    assert await powers({**motors, "l1": slow}) == [0] * 4


@pytest.mark.parametrize("leaves", [False, True])
async def test_what_waits_for_its_turn_may_be_ended(
    motors: Motors, clock: ManualClock, leaves: bool
) -> None:
    """By whoever closes it, even if it is at rest; whoever leaves leaves it standing."""
    slow = SlowMotor(clock, "set_power")
    base = await base_on({**motors, "l1": slow})
    older = asyncio.ensure_future(base.set_power(Vector3(y=1), STILL))
    await clock.settle()
    if not leaves:
        await base.stop()
    waiting = asyncio.ensure_future(base.set_power(Vector3(y=0.5), STILL))
    await clock.settle()
    if leaves:
        waiting.cancel()
        await clock.settle()
    else:
        await base.close()
    slow.gate.set()
    await asyncio.wait([older, waiting], timeout=10)
    assert isinstance(older.exception(), Interrupted)
    assert waiting.cancelled() or "interrupted by close" in str(waiting.exception())
    assert await powers({**motors, "l1": slow}) == [0] * 4


async def test_closed_unused_it_leaves_the_motors_alone(base: WheeledBase, motors: Motors) -> None:
    await motors["l1"].set_power(1)
    await base.close()
    assert (await powers(motors))[0] == 1


async def test_it_tells_about_itself(client: BaseClient) -> None:
    properties = await client.get_properties()
    assert (properties.width_meters, properties.wheel_circumference_meters) == (0.4, 0.2)
    await client.set_power(Vector3(y=0.5), STILL)
    assert await client.get_status() == {
        "is_moving": True,
        "power": {"l1": 0.5, "l2": 0.5, "r1": 0.5, "r2": 0.5},
    }


@pytest.mark.parametrize(
    "change", [{"left": []}, {"right": ["l1"]}, {"left": ["a", "a"]}, {"width_mm": 0}]
)
def test_attributes_that_cannot_be(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WheeledBaseAttributes.model_validate({**ATTRIBUTES, **change})
