from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.moving import complete_move, start_move, wait_until_still
from viam.components.gripper.client import GripperClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.gripper.attributes import FakeGripperAttributes
from cogwork.drivers.gripper.fake import FakeGripper
from cogwork.graph.name import ResourceName
from cogwork.spatial.kinematics import parse_sva

NAME = ResourceName.parse("rdk:component:gripper/g")


@pytest.fixture
async def gripper(clock: ManualClock) -> FakeGripper:
    attributes = FakeGripperAttributes(speed_mm_per_sec=10, object_width_mm=30)
    return await FakeGripper.new(NAME, attributes, {}, clock)


@pytest.fixture
async def client(gripper: FakeGripper, serve: Serve) -> AsyncIterator[GripperClient]:
    async with serve(gripper) as channel:
        yield GripperClient("g", channel)


async def is_holding(client: GripperClient) -> bool:
    return (await client.is_holding_something()).is_holding_something


async def test_grab_closes_until_it_meets_the_object(
    client: GripperClient, clock: ManualClock
) -> None:
    assert await complete_move(client, clock, client.grab(), 5)
    holding = await client.is_holding_something()
    assert holding.is_holding_something
    assert holding.meta == {"opening_mm": 30, "object_width_mm": 30}
    assert await client.get_current_inputs() == [30]


async def test_object_is_held_until_the_gripper_opens(
    client: GripperClient, clock: ManualClock
) -> None:
    await complete_move(client, clock, client.grab(), 5)
    assert await client.grab(timeout=10)
    await client.stop()
    assert await is_holding(client)
    opening = await start_move(client, client.open())
    assert not await is_holding(client)
    await clock.advance(5)
    await asyncio.wait_for(opening, 10)
    assert not await is_holding(client)
    assert await client.get_current_inputs() == [80]


async def test_grab_without_an_object_closes_completely(serve: Serve, clock: ManualClock) -> None:
    gripper = await FakeGripper.new(NAME, FakeGripperAttributes(speed_mm_per_sec=10), {}, clock)
    async with serve(gripper) as channel:
        client = GripperClient("g", channel)
        assert not await complete_move(client, clock, client.grab(), 8)
        holding = await client.is_holding_something()
        assert not holding.is_holding_something
        assert holding.meta == {"opening_mm": 0}


async def test_stop_interrupts_grab_and_nothing_is_held(
    client: GripperClient, clock: ManualClock
) -> None:
    grab = await start_move(client, client.grab())
    await clock.advance(2)
    await client.stop()
    with refused() as told:
        await asyncio.wait_for(grab, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'gripper "g" did not finish grab: interrupted by stop'
    assert await client.get_status() == {
        "opening_mm": 60,
        "is_holding_something": False,
        "is_moving": False,
    }


async def test_grab_stops_when_the_client_cancels(
    client: GripperClient, clock: ManualClock
) -> None:
    grab = await start_move(client, client.grab())
    await clock.advance(2)
    grab.cancel()
    await asyncio.wait([grab])
    await wait_until_still(client)
    assert await client.get_current_inputs() == [60]


async def test_go_to_inputs_moves_the_fingers(client: GripperClient, clock: ManualClock) -> None:
    await complete_move(client, clock, client.go_to_inputs([50]), 3)
    assert await client.get_current_inputs() == [50]
    assert not await is_holding(client)
    await complete_move(client, clock, client.go_to_inputs([10]), 2)
    assert await client.get_current_inputs() == [30]
    assert await is_holding(client)


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [([81], "81"), ([-1], "-1"), ([math.nan], "nan"), ([], "none"), ([1, 2], "1, 2")],
)
async def test_inputs_outside_the_range_are_refused(
    client: GripperClient, inputs: list[float], shown: str
) -> None:
    with refused() as told:
        await client.go_to_inputs(inputs)
    assert told.status is Status.INVALID_ARGUMENT
    assert told.words.endswith(f"from 0 to 80, not {shown}")


async def test_kinematics_describe_the_fingers(client: GripperClient) -> None:
    _, data, *_ = await client.get_kinematics()
    (fingers,) = parse_sva(data.decode()).joints
    assert (fingers.id, fingers.minimum, fingers.maximum) == ("fingers", 0, 80)


async def test_geometries_follow_the_fingers(client: GripperClient, clock: ManualClock) -> None:
    await complete_move(client, clock, client.go_to_inputs([50]), 3)
    palm, left, right = await client.get_geometries()
    assert (palm.label, palm.center.x, palm.box.dims_mm.x) == ("palm", 0, 100)
    assert (left.center.x, right.center.x) == (-30, 30)
    assert left.center.z == right.center.z == 90


def test_object_wider_than_the_opening_is_refused() -> None:
    with pytest.raises(ValidationError, match='make "opening_mm" larger'):
        FakeGripperAttributes(object_width_mm=81)
