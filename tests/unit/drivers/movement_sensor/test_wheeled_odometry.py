from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from viam.components.base import Vector3
from viam.components.movement_sensor.client import MovementSensorClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Unsupported
from cogwork.drivers.base.attributes import WheeledBaseAttributes
from cogwork.drivers.base.wheeled import WheeledBase
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.drivers.movement_sensor.attributes import WheeledOdometryAttributes
from cogwork.drivers.movement_sensor.wheeled_odometry import WheeledOdometry
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:movement_sensor/s")
BASE = ResourceName.parse("rdk:component:base/b")
LEFT = ResourceName.parse("rdk:component:motor/l")
RIGHT = ResourceName.parse("rdk:component:motor/r")
DEGREE = 111_195.08
STILL = Vector3()


@pytest.fixture
async def dependencies(clock: ManualClock) -> dict[ResourceName, Any]:
    """Return a base and its two motors, which have been turned before."""
    motors: dict[ResourceName, Any] = {}
    for name in (LEFT, RIGHT):
        motors[name] = await FakeMotor.new(name, FakeMotorAttributes(max_rpm=600), {}, clock)
        await motors[name].reset_zero_position(-1000)
    attributes = WheeledBaseAttributes(
        left=["l"], right=["r"], width_mm=500, wheel_circumference_mm=200
    )
    return {**motors, BASE: await WheeledBase.new(BASE, attributes, motors)}


async def create_sensor(
    dependencies: dict[ResourceName, Any], clock: ManualClock
) -> WheeledOdometry:
    attributes = WheeledOdometryAttributes(
        left_motors=["l"], right_motors=["r"], base="b", time_interval_msec=100
    )
    return await WheeledOdometry.new(NAME, attributes, dependencies, clock)


@pytest.fixture
async def sensor(
    dependencies: dict[ResourceName, Any], clock: ManualClock
) -> AsyncIterator[WheeledOdometry]:
    made = await create_sensor(dependencies, clock)
    await clock.settle()
    yield made
    await made.close()


@pytest.fixture
async def client(sensor: WheeledOdometry, serve: Serve) -> AsyncIterator[MovementSensorClient]:
    async with serve(sensor) as channel:
        yield MovementSensorClient("s", channel)


async def read_offset(client: MovementSensorClient) -> tuple[float, float]:
    """Return the meters north and east of the origin."""
    point, _ = await client.get_position()
    return point.latitude * DEGREE, point.longitude * DEGREE


async def test_position_and_velocity_follow_the_base(
    client: MovementSensorClient, dependencies: dict[ResourceName, Any], clock: ManualClock
) -> None:
    base = dependencies[BASE]
    assert await read_offset(client) == (0, 0)
    await base.set_velocity(Vector3(y=1000), STILL)
    await clock.advance(10)
    assert (await client.get_linear_velocity()).y == pytest.approx(1)
    assert await read_offset(client) == pytest.approx((10, 0), abs=0.001)
    await base.set_velocity(STILL, Vector3(z=-90))
    await clock.advance(1)
    assert (await client.get_angular_velocity()).z == pytest.approx(-90)
    assert await client.get_compass_heading() == pytest.approx(90)
    assert (await client.get_orientation()).theta == pytest.approx(-90)
    await base.set_velocity(Vector3(y=500), STILL)
    await clock.advance(4)
    await base.stop()
    await clock.advance(0.2)
    assert await read_offset(client) == pytest.approx((10, 2), abs=0.001)
    assert await client.get_linear_velocity() == STILL


async def test_position_follows_an_arc(
    client: MovementSensorClient, dependencies: dict[ResourceName, Any], clock: ManualClock
) -> None:
    """After half a circle it is a diameter to the left, after a full circle at the origin."""
    await dependencies[BASE].set_velocity(Vector3(y=1000), Vector3(z=36))
    await clock.advance(5)
    assert (await read_offset(client))[1] == pytest.approx(-10 / math.pi, abs=0.001)
    await clock.advance(5)
    assert await read_offset(client) == pytest.approx((0, 0), abs=0.001)


@pytest.mark.parametrize("offset", [0.0, 0.5, -1000.0])
async def test_reset_of_a_motor_position_does_not_move_the_sensor(
    client: MovementSensorClient,
    dependencies: dict[ResourceName, Any],
    clock: ManualClock,
    offset: float,
) -> None:
    """The heading stays, too, if only one motor is reset."""
    base = dependencies[BASE]
    await base.set_velocity(Vector3(y=1000), STILL)
    await clock.advance(30)
    await base.stop()
    await clock.advance(0.2)
    for motors in ((LEFT, RIGHT), (LEFT,)):
        for motor in motors:
            await dependencies[motor].reset_zero_position(offset)
        await clock.advance(0.2)
        assert await client.get_linear_velocity() == STILL
        assert await client.get_angular_velocity() == STILL
        north, east = await read_offset(client)
        assert (north, east) == pytest.approx((30, 0), abs=0.11)
        await base.set_velocity(Vector3(y=1000), STILL)
        await clock.advance(10)
        assert (await client.get_linear_velocity()).y == pytest.approx(1)
        await base.set_velocity(Vector3(y=-1000), STILL)
        await clock.advance(10)
        await base.stop()
        await clock.advance(0.2)
        assert await read_offset(client) == pytest.approx((north, east), abs=0.001)


async def test_reset_of_a_motor_position_during_a_move_is_tolerated(
    client: MovementSensorClient, dependencies: dict[ResourceName, Any], clock: ManualClock
) -> None:
    await dependencies[BASE].set_velocity(Vector3(y=1000), STILL)
    await clock.advance(30)
    for motor in (LEFT, RIGHT):
        await dependencies[motor].reset_zero_position(0)
    await clock.advance(10)
    assert (await client.get_linear_velocity()).y == pytest.approx(1)
    assert await read_offset(client) == pytest.approx((40, 0), abs=0.11)


@pytest.mark.parametrize("slip", [1.0, 1.2, 2.0])
async def test_slip_factor_of_the_base_is_applied(
    dependencies: dict[ResourceName, Any], clock: ManualClock, serve: Serve, slip: float
) -> None:
    attributes = WheeledBaseAttributes(
        left=["l"], right=["r"], width_mm=500, wheel_circumference_mm=200, spin_slip_factor=slip
    )
    base = await WheeledBase.new(BASE, attributes, dependencies)
    sensor = await create_sensor({**dependencies, BASE: base}, clock)
    await clock.settle()
    spinning = asyncio.ensure_future(base.spin(-90, 45))
    await clock.advance(2.2)
    await asyncio.wait_for(spinning, 10)
    async with serve(sensor) as channel:
        client = MovementSensorClient("s", channel)
        assert await client.get_compass_heading() == pytest.approx(90)
        await base.set_velocity(Vector3(y=1000), Vector3(z=36))
        await clock.advance(2.5)
        assert await client.get_compass_heading() == pytest.approx(0, abs=0.001)
    await sensor.close()


async def test_failing_motor_makes_the_position_unavailable(
    client: MovementSensorClient,
    dependencies: dict[ResourceName, Any],
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(**_: Any) -> float:
        raise OSError("the cable was pulled")

    with monkeypatch.context() as broken:
        broken.setattr(dependencies[LEFT], "get_position", fail)
        await clock.advance(0.1)
        with refused() as told:
            await client.get_position()
    assert told.status is Status.UNAVAILABLE
    assert told.words == 'movement sensor "s" lost track of its position: the cable was pulled'
    await clock.advance(0.1)
    assert await read_offset(client) == (0, 0)


async def test_acceleration_is_unsupported(client: MovementSensorClient) -> None:
    assert not (await client.get_properties()).linear_acceleration_supported
    with refused() as told:
        await client.get_linear_acceleration()
    assert told.status is Status.UNIMPLEMENTED
    assert "linear_acceleration" not in await client.get_readings()


async def test_motor_without_position_reporting_is_refused(
    dependencies: dict[ResourceName, Any], clock: ManualClock
) -> None:
    blind = await FakeMotor.new(LEFT, FakeMotorAttributes(position_reporting=False), {})
    with pytest.raises(Unsupported, match='motor "l" does not report its position'):
        await create_sensor({**dependencies, LEFT: blind}, clock)


async def test_base_without_a_width_is_refused(
    dependencies: dict[ResourceName, Any], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(**_: Any) -> WheeledBase.Properties:
        return WheeledBase.Properties(0, 0, 0)

    monkeypatch.setattr(dependencies[BASE], "get_properties", unknown)
    with pytest.raises(Unsupported, match='base "b" does not report its width'):
        await create_sensor(dependencies, clock)


async def test_close_ends_the_polling_task(
    dependencies: dict[ResourceName, Any], clock: ManualClock
) -> None:
    sensor = await create_sensor(dependencies, clock)
    await sensor.close()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    assert not others
