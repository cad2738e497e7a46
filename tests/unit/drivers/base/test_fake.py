from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll, run_others
from tests.unit.drivers.moving import complete_move
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


async def read_pose(client: BaseClient) -> tuple[float, float, float]:
    status = await client.get_status()
    return status["x_mm"], status["y_mm"], status["heading_deg"]  # type: ignore[return-value]


def near(*numbers: float) -> object:
    return pytest.approx(numbers, abs=1e-6)


async def test_move_straight_and_spin_drive_a_square(
    client: BaseClient, clock: ManualClock
) -> None:
    corners = [(0, 400, 90), (-400, 400, 180), (-400, 0, 270), (0, 0, 360)]
    for corner in corners:
        await complete_move(client, clock, client.move_straight(400, 200), 2)
        await complete_move(client, clock, client.spin(90, 45), 2)
        assert await read_pose(client) == near(*corner)


@pytest.mark.parametrize(
    ("distance", "velocity", "reached"), [(40, 90, 40), (40, -90, -40), (-40, 90, -40)]
)
async def test_move_straight_drives_backward_with_a_negative_argument(
    client: BaseClient, clock: ManualClock, distance: int, velocity: float, reached: float
) -> None:
    await complete_move(client, clock, client.move_straight(distance, velocity), 40 / 90)
    assert await read_pose(client) == (0, reached, 0)


@pytest.mark.parametrize(("angle", "velocity", "reached"), [(10, -20, -10), (-10, 20, -10)])
async def test_spin_turns_right_with_a_negative_argument(
    client: BaseClient, clock: ManualClock, angle: float, velocity: float, reached: float
) -> None:
    await complete_move(client, clock, client.spin(angle, velocity), 0.5)
    assert await read_pose(client) == (0, 0, reached)


async def test_set_power_scales_the_maximum_speed(client: BaseClient, clock: ManualClock) -> None:
    await client.set_power(Vector3(x=1, y=-0.5, z=1), STILL)
    await clock.advance(2)
    assert await read_pose(client) == near(0, -500, 0)
    await client.set_power(STILL, Vector3(x=1, y=1, z=0.5))
    await clock.advance(2)
    assert await read_pose(client) == near(0, -500, 90)
    await client.set_power(STILL, STILL)
    assert not await client.is_moving()


async def test_set_velocity_with_both_velocities_drives_an_arc(
    client: BaseClient, clock: ManualClock
) -> None:
    await client.set_velocity(Vector3(y=100), Vector3(z=90))
    await clock.advance(1)
    radius = 100 / (math.pi / 2)
    assert await read_pose(client) == near(-radius, radius, 90)
    await clock.advance(1000.0 * 4 - 1)
    assert (await read_pose(client))[:2] == near(0, 0)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda c: c.move_straight(10, 501), "drives at 500 mm/s at most, not at 501"),
        (lambda c: c.move_straight(10, math.nan), "accepts only finite numbers, not nan"),
        (lambda c: c.spin(10, 91), "turns at 90 degrees/s at most, not at 91"),
        (lambda c: c.spin(math.inf, 9), "accepts only finite numbers, not inf"),
        (lambda c: c.set_power(Vector3(y=2), STILL), "accepts a power between -1 and 1, not 2"),
        (
            lambda c: c.set_velocity(Vector3(y=-501), STILL),
            "drives at 500 mm/s at most, not at -501",
        ),
    ],
)
async def test_commands_beyond_the_limits_are_refused(
    client: BaseClient, ask: Callable[[BaseClient], Awaitable[None]], words: str
) -> None:
    with refused() as told:
        await ask(client)
    assert (told.status, told.words) == (Status.INVALID_ARGUMENT, f'base "b" {words}')
    assert not await client.is_moving()


@pytest.mark.parametrize(
    "ask", [lambda c: c.move_straight(0, 9), lambda c: c.spin(9, 0), lambda c: c.spin(0, 9)]
)
async def test_empty_move_stops_the_base(
    client: BaseClient, ask: Callable[[BaseClient], Awaitable[None]]
) -> None:
    await client.set_power(Vector3(y=1), STILL)
    await ask(client)
    assert not await client.is_moving()


async def test_newer_command_interrupts_a_move(client: BaseClient, clock: ManualClock) -> None:
    moving = asyncio.ensure_future(client.move_straight(1000, 100))
    await poll(client.is_moving)
    await clock.advance(1)
    await client.spin(0, 0)
    with refused() as told:
        await asyncio.wait_for(moving, 10)
    assert told.status is Status.ABORTED
    assert told.words == 'base "b" did not finish move_straight: interrupted by spin'
    assert await read_pose(client) == near(0, 100, 0)


async def test_move_stops_when_the_client_cancels(client: BaseClient, clock: ManualClock) -> None:
    moving = asyncio.ensure_future(client.spin(90, 45))
    await poll(client.is_moving)
    await clock.advance(1)
    moving.cancel()

    async def is_still() -> bool:
        return not await client.is_moving()

    await poll(is_still)
    assert await read_pose(client) == near(0, 0, 45)
    await asyncio.wait([moving])


async def test_cancelled_older_move_does_not_stop_the_newer_command(base: FakeBase) -> None:
    older = asyncio.ensure_future(base.spin(90, 45))
    await run_others()
    await base.set_power(Vector3(y=1), STILL)
    older.cancel()
    await asyncio.wait([older])
    assert await base.is_moving()


async def test_close_interrupts_a_move(base: FakeBase) -> None:
    moving = asyncio.ensure_future(base.move_straight(1000, 100))
    await run_others()
    await base.close()
    with pytest.raises(Interrupted, match="interrupted by close"):
        await moving


async def test_move_takes_real_time_with_the_system_clock() -> None:
    base = await FakeBase.new(NAME, FakeBaseAttributes(), {})
    before = SystemClock().monotonic()
    await base.move_straight(20, 1000)
    assert SystemClock().monotonic() - before >= 0.0199
    assert (await base.odometry()).pose.y == 20
    assert not await base.is_moving()


async def test_properties_geometries_and_status_of_the_base(
    base: FakeBase, client: BaseClient
) -> None:
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
def test_invalid_attributes_are_refused(attributes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FakeBaseAttributes.model_validate(attributes)
