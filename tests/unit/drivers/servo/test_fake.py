from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.moving import complete_move, start_move, wait_until_still
from viam.components.servo.client import ServoClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.servo.attributes import FakeServoAttributes
from cogwork.drivers.servo.fake import FakeServo
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:servo/s")


@pytest.fixture
async def servo(clock: ManualClock) -> FakeServo:
    attributes = FakeServoAttributes(degrees_per_second=50, minimum=10, maximum=160)
    return await FakeServo.new(NAME, attributes, {}, clock)


@pytest.fixture
async def client(servo: FakeServo, serve: Serve) -> AsyncIterator[ServoClient]:
    async with serve(servo) as channel:
        yield ServoClient("s", channel)


async def test_move_takes_time(client: ServoClient, clock: ManualClock) -> None:
    assert await client.get_position() == 10
    await complete_move(client, clock, client.move(160), 3)
    assert await client.get_position() == 160
    await complete_move(client, clock, client.move(60), 2)
    assert await client.get_position() == 60


async def test_stop_holds_an_intermediate_position(client: ServoClient, clock: ManualClock) -> None:
    move = await start_move(client, client.move(110))
    await clock.advance(0.51)
    assert await client.get_position() == 36
    assert await client.get_status() == {"position_deg": pytest.approx(35.5), "is_moving": True}
    await client.stop()
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'servo "s" did not finish move: interrupted by stop'
    await clock.advance(1)
    assert await client.get_position() == 36


@pytest.mark.parametrize("angle", [9, 161, 2**32 - 1])
async def test_angles_outside_the_range_are_refused(client: ServoClient, angle: int) -> None:
    with refused() as told:
        await client.move(angle)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == f'servo "s" turns from 10 to 160 degrees, not to {angle}'
    assert await client.get_position() == 10


async def test_move_stops_when_the_client_cancels(client: ServoClient, clock: ManualClock) -> None:
    move = await start_move(client, client.move(160))
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await wait_until_still(client)
    assert await client.get_position() == 60


async def test_move_stops_when_the_deadline_expires(client: ServoClient) -> None:
    with pytest.raises((GRPCError, TimeoutError)):
        await client.move(160, timeout=0.05)
    await wait_until_still(client)


async def test_close_interrupts_a_move(servo: FakeServo, clock: ManualClock) -> None:
    move = asyncio.ensure_future(servo.move(160))
    await clock.settle()
    await servo.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move


async def test_servo_has_no_geometries(client: ServoClient) -> None:
    assert await client.get_geometries() == []


def test_reversed_range_is_refused() -> None:
    with pytest.raises(ValidationError, match='"minimum" 90 is greater than "maximum" 45'):
        FakeServoAttributes(minimum=90, maximum=45)
