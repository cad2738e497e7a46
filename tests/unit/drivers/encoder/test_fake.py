from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused
from viam.components.encoder.client import EncoderClient
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import ManualClock
from cogwork.drivers.encoder.attributes import FakeEncoderAttributes
from cogwork.drivers.encoder.fake import FakeEncoder
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.motor.fake import FakeMotor
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:encoder/e")
MOTOR = ResourceName.parse("rdk:component:motor/m")
TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES


@pytest.fixture
async def motor(clock: ManualClock) -> FakeMotor:
    return await FakeMotor.new(MOTOR, FakeMotorAttributes(max_rpm=60), {}, clock)


@pytest.fixture
async def counting(clock: ManualClock, serve: Serve) -> AsyncIterator[EncoderClient]:
    attributes = FakeEncoderAttributes(rate=-10, ticks_per_revolution=40)
    async with serve(await FakeEncoder.new(NAME, attributes, {}, clock)) as channel:
        yield EncoderClient("e", channel)


@pytest.fixture
async def following(motor: FakeMotor, serve: Serve) -> AsyncIterator[EncoderClient]:
    attributes = FakeEncoderAttributes(motor="m", ticks_per_revolution=20)
    async with serve(await FakeEncoder.new(NAME, attributes, {MOTOR: motor})) as channel:
        yield EncoderClient("e", channel)


async def test_it_counts_by_itself(counting: EncoderClient, clock: ManualClock) -> None:
    assert await counting.get_position() == (0, TICKS)
    await clock.advance(1.27)
    assert await counting.get_position() == (-13, TICKS)
    assert await counting.get_position(TICKS) == (-13, TICKS)
    assert await counting.get_position(DEGREES) == (360 * 27 / 40, DEGREES)


async def test_it_counts_from_where_it_was_reset(
    counting: EncoderClient, clock: ManualClock
) -> None:
    await clock.advance(1)
    await counting.reset_position()
    assert await counting.get_position() == (0, TICKS)
    await clock.advance(2)
    assert await counting.get_position() == (-20, TICKS)


async def test_it_follows_a_motor(
    following: EncoderClient, motor: FakeMotor, clock: ManualClock
) -> None:
    await motor.set_power(1)
    await clock.advance(2.5)
    assert await following.get_position() == (50, TICKS)
    assert await following.get_position(DEGREES) == (180, DEGREES)
    await motor.set_power(-1)
    await clock.advance(5)
    assert await following.get_position() == (-50, TICKS)
    await following.reset_position()
    assert await motor.get_position() == pytest.approx(-2.5), "the motor is none of its business"
    assert await following.get_status() == {"ticks": 0, "degrees": 0}


async def test_a_motor_without_a_position_says_so(serve: Serve) -> None:
    blind = await FakeMotor.new(MOTOR, FakeMotorAttributes(position_reporting=False), {})
    attributes = FakeEncoderAttributes(motor="m")
    async with serve(await FakeEncoder.new(NAME, attributes, {MOTOR: blind})) as channel:
        with refused() as told:
            await EncoderClient("e", channel).get_position()
    assert told.status is Status.UNIMPLEMENTED
    assert told.words.startswith('motor "m" does not support get_position')


async def test_a_kind_of_position_that_nobody_has(counting: EncoderClient) -> None:
    with refused() as told:
        await counting.get_position(9)  # type: ignore[arg-type]
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'encoder "e" does not support position type 9'


async def test_it_tells_about_itself(counting: EncoderClient) -> None:
    properties = await counting.get_properties()
    assert properties.ticks_count_supported
    assert properties.angle_degrees_supported
    assert await counting.get_geometries() == []


@pytest.mark.parametrize("attributes", [{"ticks_per_revolution": 0}, {"motor": "m", "rate": 1}])
def test_attributes_that_cannot_be(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeEncoderAttributes.model_validate(attributes)
