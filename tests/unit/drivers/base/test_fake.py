from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.served import Serve, refused, until
from tests.unit.drivers.moving import moved
from viam.components.base import Vector3
from viam.components.base.client import BaseClient

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.base.protocols import HasOdometry
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:base/b")
ATTRIBUTES = FakeBaseAttributes(
    width_mm=400,
    length_mm=700,
    height_mm=200,
    turning_radius_mm=50,
    wheel_circumference_mm=250,
    max_mm_per_sec=500,
    max_degs_per_sec=90,
)
STILL = Vector3()


@pytest.fixture
async def base(clock: ManualClock) -> FakeBase:
    return await FakeBase.new(NAME, ATTRIBUTES, {}, clock)


@pytest.fixture
async def client(base: FakeBase, serve: Serve) -> AsyncIterator[BaseClient]:
    async with serve(base) as channel:
        yield BaseClient("b", channel)


async def pose(client: BaseClient) -> tuple[float, float, float]:
    status = await client.get_status()
    return status["x_mm"], status["y_mm"], status["heading_deg"]  # type: ignore[return-value]


def near(*numbers: float) -> object:
    return pytest.approx(numbers, abs=1e-6)


async def test_it_drives_a_square(client: BaseClient, clock: ManualClock) -> None:
    corners = [(0, 400, 90), (-400, 400, 180), (-400, 0, 270), (0, 0, 360)]
    for corner in corners:
        await moved(client, clock, client.move_straight(400, 200), 2)
        await moved(client, clock, client.spin(90, 45), 2)
        assert await pose(client) == near(*corner)


@pytest.mark.parametrize(
    ("distance", "velocity", "reached"), [(40, 90, 40), (40, -90, -40), (-40, 90, -40)]
)
async def test_it_drives_backward(
    client: BaseClient, clock: ManualClock, distance: int, velocity: float, reached: float
) -> None:
    await moved(client, clock, client.move_straight(distance, velocity), 40 / 90)
    assert await pose(client) == (0, reached, 0)


@pytest.mark.parametrize(("angle", "velocity", "reached"), [(10, -20, -10), (-10, 20, -10)])
async def test_it_spins_to_the_right(
    client: BaseClient, clock: ManualClock, angle: float, velocity: float, reached: float
) -> None:
    await moved(client, clock, client.spin(angle, velocity), 0.5)
    assert await pose(client) == (0, 0, reached)


async def test_power_is_a_part_of_its_speed(client: BaseClient, clock: ManualClock) -> None:
    await client.set_power(Vector3(x=1, y=-0.5, z=1), STILL)
    await clock.advance(2)
    assert await pose(client) == near(0, -500, 0)
    await client.set_power(STILL, Vector3(x=1, y=1, z=0.5))
    await clock.advance(2)
    assert await pose(client) == near(0, -500, 90)
    await client.set_power(STILL, STILL)
    assert not await client.is_moving()


async def test_both_velocities_are_an_arc(client: BaseClient, clock: ManualClock) -> None:
    await client.set_velocity(Vector3(y=100), Vector3(z=90))
    await clock.advance(1)
    radius = 100 / (math.pi / 2)
    assert await pose(client) == near(-radius, radius, 90)
    await clock.advance(1000.0 * 4 - 1)
    assert (await pose(client))[:2] == near(0, 0)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda c: c.move_straight(10, 501), "drives at 500 mm/s at most, not at 501"),
        (lambda c: c.move_straight(10, math.nan), "cannot drive by nan: give a finite number"),
        (lambda c: c.spin(10, 91), "turns at 90 degrees/s at most, not at 91"),
        (lambda c: c.spin(math.inf, 9), "cannot drive by inf: give a finite number"),
        (lambda c: c.set_power(Vector3(y=2), STILL), "accepts a power between -1 and 1, not 2"),
        (
            lambda c: c.set_velocity(Vector3(y=-501), STILL),
            "drives at 500 mm/s at most, not at -501",
        ),
    ],
)
async def test_what_it_cannot_do(
    client: BaseClient, ask: Callable[[BaseClient], Awaitable[None]], words: str
) -> None:
    with refused() as told:
        await ask(client)
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, f'base "b" {words}')
    assert not await client.is_moving()


@pytest.mark.parametrize(
    "ask", [lambda c: c.move_straight(0, 9), lambda c: c.spin(9, 0), lambda c: c.spin(0, 9)]
)
async def test_nothing_to_do_stops_it(
    client: BaseClient, ask: Callable[[BaseClient], Awaitable[None]]
) -> None:
    await client.set_power(Vector3(y=1), STILL)
    await ask(client)
    assert not await client.is_moving()


async def test_the_newest_command_has_it(client: BaseClient, clock: ManualClock) -> None:
    moving = asyncio.ensure_future(client.move_straight(1000, 100))
    await until(client.is_moving)
    await clock.advance(1)
    await client.spin(0, 0)
    with refused() as told:
        await asyncio.wait_for(moving, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'base "b" did not finish move_straight: interrupted by spin'
    assert await pose(client) == near(0, 100, 0)


async def test_who_leaves_leaves_it_standing(client: BaseClient, clock: ManualClock) -> None:
    moving = asyncio.ensure_future(client.spin(90, 45))
    await until(client.is_moving)
    await clock.advance(1)
    moving.cancel()

    async def stands() -> bool:
        return not await client.is_moving()

    await until(stands)
    assert await pose(client) == near(0, 0, 45)
    await asyncio.wait([moving])


async def test_who_was_overtaken_does_not_stop_the_newer(base: FakeBase) -> None:
    older = asyncio.ensure_future(base.spin(90, 45))
    await asyncio.sleep(0)
    await base.set_power(Vector3(y=1), STILL)
    older.cancel()
    await asyncio.wait([older])
    assert await base.is_moving()


async def test_closing_it_ends_its_move(base: FakeBase) -> None:
    moving = asyncio.ensure_future(base.move_straight(1000, 100))
    await asyncio.sleep(0)
    await base.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await moving


async def test_a_move_takes_real_time_by_the_clock_of_the_machine() -> None:
    base = await FakeBase.new(NAME, FakeBaseAttributes(), {})
    before = SystemClock().monotonic()
    await base.move_straight(20, 1000)
    assert SystemClock().monotonic() - before >= 0.0199
    assert (await base.odometry()).pose.y == 20
    assert not await base.is_moving()


async def test_it_tells_about_itself(base: FakeBase, client: BaseClient) -> None:
    properties = await client.get_properties()
    assert (properties.width_meters, properties.turning_radius_meters) == (0.4, 0.05)
    assert properties.wheel_circumference_meters == 0.25
    (geometry,) = await client.get_geometries()
    size = geometry.box.dims_mm
    assert (geometry.label, size.x, size.y, size.z) == ("b", 400, 700, 200)
    await client.set_velocity(Vector3(y=-100), Vector3(z=10))
    status = await client.get_status()
    assert (status["is_moving"], status["mm_per_sec"], status["degs_per_sec"]) == (True, -100, 10)
    assert isinstance(base, HasOdometry)


@pytest.mark.parametrize("attributes", [{"width_mm": 0}, {"max_mm_per_sec": -1}, {"speed": 1}])
def test_attributes_that_cannot_be(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeBaseAttributes.model_validate(attributes)
