from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
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
async def counting_encoder(clock: ManualClock, serve: Serve) -> AsyncIterator[EncoderClient]:
    attributes = FakeEncoderAttributes(rate=-10, ticks_per_revolution=40)
    async with serve(await FakeEncoder.new(NAME, attributes, {}, clock)) as channel:
        yield EncoderClient("e", channel)


@pytest.fixture
async def following_encoder(motor: FakeMotor, serve: Serve) -> AsyncIterator[EncoderClient]:
    attributes = FakeEncoderAttributes(motor="m", ticks_per_revolution=20)
    async with serve(await FakeEncoder.new(NAME, attributes, {MOTOR: motor})) as channel:
        yield EncoderClient("e", channel)


async def test_position_increases_at_the_configured_rate(
    counting_encoder: EncoderClient, clock: ManualClock
) -> None:
    assert await counting_encoder.get_position() == (0, TICKS)
    await clock.advance(1.27)
    assert await counting_encoder.get_position() == (-13, TICKS)
    assert await counting_encoder.get_position(TICKS) == (-13, TICKS)
    assert await counting_encoder.get_position(DEGREES) == (360 * 27 / 40, DEGREES)


async def test_reset_position_starts_counting_at_zero(
    counting_encoder: EncoderClient, clock: ManualClock
) -> None:
    await clock.advance(1)
    await counting_encoder.reset_position()
    assert await counting_encoder.get_position() == (0, TICKS)
    await clock.advance(2)
    assert await counting_encoder.get_position() == (-20, TICKS)


async def test_encoder_follows_its_motor(
    following_encoder: EncoderClient, motor: FakeMotor, clock: ManualClock
) -> None:
    await motor.set_power(1)
    await clock.advance(2.5)
    assert await following_encoder.get_position() == (50, TICKS)
    assert await following_encoder.get_position(DEGREES) == (180, DEGREES)
    await motor.set_power(-1)
    await clock.advance(5)
    assert await following_encoder.get_position() == (-50, TICKS)
    await following_encoder.reset_position()
    assert await motor.get_position() == pytest.approx(-2.5), "the motor is none of its business"
    assert await following_encoder.get_status() == {"ticks": 0, "degrees": 0}


async def test_motor_without_position_reporting_is_refused(serve: Serve) -> None:
    blind = await FakeMotor.new(MOTOR, FakeMotorAttributes(position_reporting=False), {})
    attributes = FakeEncoderAttributes(motor="m")
    async with serve(await FakeEncoder.new(NAME, attributes, {MOTOR: blind})) as channel:
        with refused() as told:
            await EncoderClient("e", channel).get_position()
    assert told.status is Status.UNIMPLEMENTED
    assert told.words.startswith('motor "m" does not support get_position')


async def test_unknown_position_type_is_refused(counting_encoder: EncoderClient) -> None:
    with refused() as told:
        await counting_encoder.get_position(9)  # type: ignore[arg-type]
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == 'encoder "e" does not support position type 9'


async def test_properties_of_the_encoder(counting_encoder: EncoderClient) -> None:
    properties = await counting_encoder.get_properties()
    assert properties.ticks_count_supported
    assert properties.angle_degrees_supported
    assert await counting_encoder.get_geometries() == []


@pytest.mark.parametrize("attributes", [{"ticks_per_revolution": 0}, {"motor": "m", "rate": 1}])
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeEncoderAttributes.model_validate(attributes)
