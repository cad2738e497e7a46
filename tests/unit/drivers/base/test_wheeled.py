from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll, run_others
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


async def create_base(motors: dict[str, Any]) -> WheeledBase:
    found = {ResourceName.parse(f"rdk:component:motor/{name}"): m for name, m in motors.items()}
    return await WheeledBase.new(NAME, WheeledBaseAttributes.model_validate(ATTRIBUTES), found)


@pytest.fixture
async def base(motors: Motors) -> WheeledBase:
    return await create_base(motors)


@pytest.fixture
async def client(base: WheeledBase, serve: Serve) -> AsyncIterator[BaseClient]:
    async with serve(base) as channel:
        yield BaseClient("b", channel)


async def read_positions(motors: Motors) -> list[float]:
    return [await motor.get_position() for motor in motors.values()]


async def read_powers(motors: Motors) -> list[float]:
    return [(await motor.is_powered())[1] for motor in motors.values()]


@pytest.mark.parametrize(("distance", "velocity", "sign"), [(400, 200, 1), (400, -200, -1)])
async def test_move_straight_turns_all_wheels_alike(
    client: BaseClient,
    motors: Motors,
    clock: ManualClock,
    distance: int,
    velocity: float,
    sign: float,
) -> None:
    moving = asyncio.ensure_future(client.move_straight(distance, velocity))
    await poll(client.is_moving)
    await clock.advance(2)
    await asyncio.wait_for(moving, 10)
    assert await read_positions(motors) == [2 * sign] * 4
    assert not await client.is_moving()


async def test_spin_turns_the_sides_in_opposite_directions(
    client: BaseClient, motors: Motors, clock: ManualClock
) -> None:
    moving = asyncio.ensure_future(client.spin(180, 90))
    await poll(client.is_moving)
    await clock.advance(2)
    await asyncio.wait_for(moving, 10)
    # Half the circle of the wheels, multiplied by the slip factor of 1.5.
    far = math.pi * 200 * 1.5 / 200
    assert await read_positions(motors) == pytest.approx([-far, -far, far, far])


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
async def test_set_power_mixes_linear_and_angular_power_per_side(
    client: BaseClient, motors: Motors, linear: float, angular: float, left: float, right: float
) -> None:
    await client.set_power(Vector3(y=linear), Vector3(z=angular))
    assert await read_powers(motors) == pytest.approx([left, left, right, right])


async def test_set_velocity_mixes_linear_and_angular_velocity_per_side(
    client: BaseClient, motors: Motors, clock: ManualClock
) -> None:
    await client.set_velocity(Vector3(y=200), Vector3(z=math.degrees(0.5)))
    await clock.advance(2)
    # 200 mm/s, plus 0.5 rad/s at 200 mm from the center, multiplied by the slip factor.
    assert await read_positions(motors) == pytest.approx([0.5, 0.5, 3.5, 3.5])
    await client.set_velocity(STILL, STILL)
    assert await read_powers(motors) == [0] * 4


async def test_stop_stops_all_motors(client: BaseClient, motors: Motors) -> None:
    moving = asyncio.ensure_future(client.move_straight(1000, 100))
    await poll(client.is_moving)
    await client.stop()
    assert await read_powers(motors) == [0] * 4
    with refused() as told:
        await asyncio.wait_for(moving, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'base "b" did not finish move_straight: interrupted by stop'


async def test_stop_overrides_a_concurrent_set_power(base: WheeledBase, motors: Motors) -> None:
    """Check every interleaving of the two calls."""
    for turns in range(1, 9):
        rolling = asyncio.ensure_future(base.set_power(Vector3(y=1), STILL))
        await run_others(turns)
        await base.stop()
        await asyncio.wait([rolling])
        assert await read_powers(motors) == [0] * 4, f"after {turns} turns of the loop"
        assert isinstance(rolling.exception(), Interrupted | None)


async def test_newer_command_interrupts_all_older_moves(base: WheeledBase, motors: Motors) -> None:
    commands = [asyncio.ensure_future(base.move_straight(1000, 100)) for _ in range(3)]
    await run_others()
    await base.set_power(Vector3(y=0.5), STILL)
    for command in commands:
        with pytest.raises(Interrupted, match="did not finish move_straight"):
            await command
    assert await read_powers(motors) == [0.5] * 4


async def test_move_stops_when_the_client_cancels(client: BaseClient, motors: Motors) -> None:
    moving = asyncio.ensure_future(client.spin(180, 9))
    await poll(client.is_moving)
    moving.cancel()

    async def is_still() -> bool:
        return not await client.is_moving()

    await poll(is_still)
    assert await read_powers(motors) == [0] * 4
    await asyncio.wait([moving])


async def test_no_motor_moves_when_one_refuses_the_command(
    client: BaseClient, motors: Motors
) -> None:
    with refused() as told:
        await client.move_straight(100, 10_000)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words.endswith("turns at 240 rpm at most, not at 3000")
    assert await read_powers(motors) == [0] * 4


async def test_command_to_one_motor_ends_the_move_of_the_base(
    base: WheeledBase, motors: Motors, clock: ManualClock
) -> None:
    moving = asyncio.ensure_future(base.move_straight(1000, 100))
    await clock.settle()
    await motors["r1"].set_power(0.1)
    with pytest.raises(
        Interrupted, match='motor "r1" did not finish go_for: interrupted by set_power'
    ):
        await moving
    assert await read_powers(motors) == [0] * 4


class BrakeStuck(CogworkError):
    pass


async def test_stop_stops_the_other_motors_when_one_fails(motors: Motors) -> None:
    class JammedMotor(FakeMotor):
        async def stop(self, **_: Any) -> None:
            raise BrakeStuck("the brake is stuck")

    jammed = JammedMotor(
        ResourceName.parse("rdk:component:motor/l1"), FakeMotorAttributes(), ManualClock()
    )
    base = await create_base({**motors, "l1": jammed})
    await base.set_power(Vector3(y=0.5), STILL)
    with pytest.raises(BrakeStuck):
        await base.stop()
    assert (await read_powers(motors))[1:] == [0] * 3


async def test_close_stops_moving_motors(base: WheeledBase, motors: Motors) -> None:
    await base.set_power(Vector3(y=0.5), STILL)
    await base.close()
    assert await read_powers(motors) == [0] * 4


class SlowMotor(FakeMotor):
    """Executes commands at once, but returns only after `gate` is set."""

    def __init__(self, clock: ManualClock, slow: str) -> None:
        name = ResourceName.parse("rdk:component:motor/l1")
        super().__init__(name, FakeMotorAttributes(max_rpm=240), clock)
        self.slow = slow
        self.gate = asyncio.Event()

    async def set_power(self, power: float, **_: Any) -> None:
        await super().set_power(power)
        if self.slow == "set_power":
            # Not even cancellation returns earlier.
            with contextlib.suppress(asyncio.CancelledError):
                await self.gate.wait()
            await self.gate.wait()

    async def stop(self, **_: Any) -> None:
        await super().stop()
        if self.slow == "stop":
            await self.gate.wait()


async def test_close_stops_motors_driven_during_a_pending_stop(
    motors: Motors, clock: ManualClock
) -> None:
    slow = SlowMotor(clock, "stop")
    base = await create_base({**motors, "l1": slow})
    await base.set_power(Vector3(y=1), STILL)
    stop = asyncio.ensure_future(base.stop())
    await clock.settle()
    await base.set_power(Vector3(y=0.5), STILL)
    slow.gate.set()
    await stop
    assert await read_powers({**motors, "l1": slow}) == [0.5] * 4
    await base.close()
    assert await read_powers({**motors, "l1": slow}) == [0] * 4


@pytest.mark.parametrize("leaves", [False, True])
async def test_waiting_command_is_ended_by_close_or_cancellation(
    motors: Motors, clock: ManualClock, leaves: bool
) -> None:
    """Close interrupts it even at rest; cancellation leaves the base at rest."""
    slow = SlowMotor(clock, "set_power")
    base = await create_base({**motors, "l1": slow})
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
    assert await read_powers({**motors, "l1": slow}) == [0] * 4


async def test_close_leaves_motors_alone_when_the_base_was_not_used(
    base: WheeledBase, motors: Motors
) -> None:
    await motors["l1"].set_power(1)
    await base.close()
    assert (await read_powers(motors))[0] == 1


async def test_properties_and_status_of_the_base(client: BaseClient) -> None:
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
def test_invalid_attributes_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        WheeledBaseAttributes.model_validate({**ATTRIBUTES, **change})
