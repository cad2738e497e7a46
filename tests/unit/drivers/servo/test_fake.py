from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused
from tests.unit.drivers.moving import begun, moved, stands
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


async def test_it_turns_in_time(client: ServoClient, clock: ManualClock) -> None:
    assert await client.get_position() == 10
    await moved(client, clock, client.move(160), 3)
    assert await client.get_position() == 160
    await moved(client, clock, client.move(60), 2)
    assert await client.get_position() == 60


async def test_on_its_way_it_is_somewhere_in_between(
    client: ServoClient, clock: ManualClock
) -> None:
    move = await begun(client, client.move(110))
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
async def test_it_has_a_range(client: ServoClient, angle: int) -> None:
    with refused() as told:
        await client.move(angle)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words == f'servo "s" turns from 10 to 160 degrees, not to {angle}'
    assert await client.get_position() == 10


async def test_when_the_client_is_gone_it_stops(client: ServoClient, clock: ManualClock) -> None:
    move = await begun(client, client.move(160))
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await stands(client)
    assert await client.get_position() == 60


async def test_a_deadline_stops_it(client: ServoClient) -> None:
    with pytest.raises((GRPCError, TimeoutError)):
        await client.move(160, timeout=0.05)
    await stands(client)


async def test_closing_it_ends_a_move(servo: FakeServo, clock: ManualClock) -> None:
    move = asyncio.ensure_future(servo.move(160))
    await clock.settle()
    await servo.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move


async def test_it_takes_up_no_room(client: ServoClient) -> None:
    assert await client.get_geometries() == []


def test_a_range_has_its_ends_in_order() -> None:
    with pytest.raises(ValidationError, match='"minimum" 90 is greater than "maximum" 45'):
        FakeServoAttributes(minimum=90, maximum=45)
