from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator

import pytest
from grpclib.const import Status
from tests.support.machine.served import Serve, refused
from tests.unit.drivers.moving import complete_move, start_move, wait_until_still
from viam.components.gantry.client import GantryClient
from viam.proto.common import KinematicsFileFormat

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.gantry.attributes import FakeGantryAttributes
from cogwork.drivers.gantry.fake import FakeGantry
from cogwork.graph.name import ResourceName
from cogwork.spatial.kinematics import parse_sva

NAME = ResourceName.parse("rdk:component:gantry/g")


@pytest.fixture
async def gantry(clock: ManualClock) -> FakeGantry:
    attributes = FakeGantryAttributes(lengths_mm=[400, 200], speed_mm_per_sec=100)
    return await FakeGantry.new(NAME, attributes, {}, clock)


@pytest.fixture
async def client(gantry: FakeGantry, serve: Serve) -> AsyncIterator[GantryClient]:
    async with serve(gantry) as channel:
        yield GantryClient("g", channel)


async def test_gantry_has_one_axis_by_default(serve: Serve, clock: ManualClock) -> None:
    gantry = await FakeGantry.new(NAME, FakeGantryAttributes(), {}, clock)
    async with serve(gantry) as channel:
        client = GantryClient("g", channel)
        assert await client.get_lengths() == [1000]
        await complete_move(client, clock, client.move_to_position([500], []), 2)
        assert await client.get_position() == [500]


async def test_axes_move_at_their_own_speeds(client: GantryClient, clock: ManualClock) -> None:
    move = await start_move(client, client.move_to_position([80, 20], [20, 10]))
    await clock.advance(1)
    assert await client.get_position() == [20, 10]
    await clock.advance(2)
    assert await client.get_position() == [60, 20]
    await clock.advance(1)
    await asyncio.wait_for(move, 10)
    assert await client.get_position() == [80, 20]
    assert not await client.is_moving()


async def test_move_without_speeds_uses_the_maximum_speed(
    client: GantryClient, clock: ManualClock
) -> None:
    await complete_move(client, clock, client.move_to_position([400, 0], []), 4)


async def test_home_moves_all_axes_to_zero(client: GantryClient, clock: ManualClock) -> None:
    await complete_move(client, clock, client.move_to_position([200, 100], []), 2)
    assert await complete_move(client, clock, client.home(), 2)
    assert await client.get_position() == [0, 0]


async def test_stop_interrupts_a_move_and_holds_the_position(
    client: GantryClient, clock: ManualClock
) -> None:
    move = await start_move(client, client.move_to_position([400, 200], []))
    await clock.advance(1)
    await client.stop()
    with refused() as told:
        await asyncio.wait_for(move, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'gantry "g" did not finish move_to_position: interrupted by stop'
    assert await client.get_status() == {
        "positions_mm": [100, 100],
        "lengths_mm": [400, 200],
        "is_moving": False,
    }


async def test_move_stops_when_the_client_cancels(client: GantryClient, clock: ManualClock) -> None:
    move = await start_move(client, client.move_to_position([400, 200], []))
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    await wait_until_still(client)
    assert await client.get_position() == [100, 100]


@pytest.mark.parametrize(
    ("positions", "words"),
    [
        ([401, 0], 'axis 1 of gantry "g" goes from 0 to 400 mm, not to 401'),
        ([0, -1], 'axis 2 of gantry "g" goes from 0 to 200 mm, not to -1'),
        ([math.nan, 0], 'axis 1 of gantry "g" goes from 0 to 400 mm, not to nan'),
        ([1], 'gantry "g" has 2 axes and needs 2 positions, not 1'),
    ],
)
async def test_positions_outside_the_axes_are_refused(
    client: GantryClient, positions: list[float], words: str
) -> None:
    with refused() as told:
        await client.move_to_position(positions, [])
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, words)


@pytest.mark.parametrize("speeds", [[0, 10], [10, 101], [10, math.nan], [-1, 10], [10]])
async def test_invalid_speeds_are_refused(client: GantryClient, speeds: list[float]) -> None:
    with refused() as told:
        await client.move_to_position([10, 10], speeds)
    assert told.status is Status.INVALID_ARGUMENT
    assert (
        "above 0 and at most 100 mm per second" in told.words
        or "needs 2 speeds, not 1" in told.words
    )


async def test_kinematics_describe_the_axes(client: GantryClient) -> None:
    form, data, *_ = await client.get_kinematics()
    assert form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA
    chain = parse_sva(data.decode())
    assert chain.name == "g"
    assert chain.pose([300, 50]).point == pytest.approx((300, 50, 0))
    assert [limits.maximum for limits in chain.limits] == [400, 200]


async def test_geometries_follow_the_position(client: GantryClient, clock: ManualClock) -> None:
    await complete_move(client, clock, client.move_to_position([300, 0], []), 3)
    first, second = await client.get_geometries()
    assert (first.label, first.center.x, first.box.dims_mm.x) == ("axis_1", 200, 400)
    assert (second.label, second.center.x, second.center.y) == ("axis_2", 300, 100)
    assert (second.box.dims_mm.x, second.box.dims_mm.y) == (40, 200)


async def test_close_interrupts_a_move(gantry: FakeGantry, clock: ManualClock) -> None:
    move = asyncio.ensure_future(gantry.move_to_position([400, 0], []))
    await clock.settle()
    await gantry.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await move
