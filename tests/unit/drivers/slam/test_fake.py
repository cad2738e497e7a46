from __future__ import annotations

import asyncio
import json
import math
import struct
from collections.abc import AsyncIterator, Callable

import pytest
from pydantic import ValidationError
from tests.support.machine.served import Serve
from viam.components.base import Vector3
from viam.proto.common import Pose
from viam.proto.service.motion import PlanState
from viam.proto.service.slam import MappingMode
from viam.services.motion.client import MotionClient
from viam.services.slam.client import SLAMClient

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Unsupported
from cogwork.drivers.base.attributes import FakeBaseAttributes
from cogwork.drivers.base.fake import FakeBase
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motion.builtin import BuiltinMotion
from cogwork.drivers.slam.attributes import FakeSlamAttributes
from cogwork.drivers.slam.fake import CHUNK_SIZE, FakeSlam
from cogwork.graph.name import ResourceName
from cogwork.resource.machine_access import MachineAccess

NAME = ResourceName.parse("rdk:service:slam/s")
BASE = ResourceName.parse("rdk:component:base/b")


@pytest.fixture
async def slam(clock: ManualClock) -> FakeSlam:
    return await FakeSlam.new(NAME, FakeSlamAttributes(mapping_mode="create_new_map"), {}, clock)


@pytest.fixture
async def client(slam: FakeSlam, serve: Serve) -> AsyncIterator[SLAMClient]:
    async with serve(slam) as channel:
        yield SLAMClient("s", channel)


def parse_points(cloud: bytes) -> list[tuple[float, float, float]]:
    header, _, data = cloud.partition(b"DATA binary\n")
    lines = dict(line.split(maxsplit=1) for line in header.decode().splitlines())
    assert (lines["FIELDS"], lines["SIZE"], lines["TYPE"]) == ("x y z", "4 4 4", "F F F")
    assert int(lines["POINTS"]) == int(lines["WIDTH"]) * int(lines["HEIGHT"])
    points = list(struct.iter_unpack("<3f", data))
    assert len(points) == int(lines["POINTS"])
    return points


async def test_map_shows_the_room_and_the_pillar(client: SLAMClient) -> None:
    points = parse_points(b"".join(await client.get_point_cloud_map()))
    walls = [(x, y) for x, y, _ in points if on_edge(x, y, 3.0, 2.0)]
    pillar = [(x, y) for x, y, _ in points if on_edge(x, y, 0.75, 0.5)]
    assert walls
    assert pillar
    assert len(walls) + len(pillar) == len(points)
    assert max(z for _, _, z in points) == pytest.approx(2.45, abs=0.06)
    assert min(z for _, _, z in points) == 0
    assert parse_points(b"".join(await client.get_point_cloud_map(True))) == points


def on_edge(x: float, y: float, half_width: float, half_depth: float) -> bool:
    near = math.isclose
    return (near(abs(x), half_width, abs_tol=1e-3) and abs(y) <= half_depth + 1e-3) or (
        near(abs(y), half_depth, abs_tol=1e-3) and abs(x) <= half_width + 1e-3
    )


async def test_large_map_is_split_into_chunks(clock: ManualClock) -> None:
    slam = await FakeSlam.new(NAME, FakeSlamAttributes(resolution_mm=15), {}, clock)
    chunks = await slam.get_point_cloud_map()
    assert len(chunks) > 1
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_SIZE] * (len(chunks) - 1)
    assert parse_points(b"".join(chunks))


async def test_position_circles_the_pillar_inside_the_room(
    client: SLAMClient, clock: ManualClock
) -> None:
    start = await client.get_position()
    assert (start.x, start.y, start.z) == pytest.approx((1875, -1250, 0))
    last = start
    seconds = 2 * (3750 + 2500) / 300
    for _ in range(50):
        await clock.advance(seconds / 50)
        pose = await client.get_position()
        assert max(abs(pose.x) / 3000, abs(pose.y) / 2000) == pytest.approx(0.625, abs=1e-6)
        moved = math.dist((pose.x, pose.y), (last.x, last.y))
        assert 0 < moved <= 300 * seconds / 50 + 1e-6
        last = pose
    assert (last.x, last.y) == pytest.approx((start.x, start.y), abs=1e-3)


async def test_heading_follows_the_path(client: SLAMClient, clock: ManualClock) -> None:
    for _ in range(20):
        before = await client.get_position()
        await clock.advance(0.01)
        after = await client.get_position()
        heading = math.degrees(math.atan2(after.y - before.y, after.x - before.x))
        assert math.remainder(heading - before.theta, 360) == pytest.approx(0, abs=1e-3)
        await clock.advance(1.9)


async def test_speed_of_zero_keeps_the_position(clock: ManualClock) -> None:
    slam = await FakeSlam.new(NAME, FakeSlamAttributes(speed_mm_per_sec=0), {}, clock)
    before = await slam.get_position()
    await clock.advance(100)
    assert await slam.get_position() == before


@pytest.fixture
async def base(clock: ManualClock) -> FakeBase:
    return await FakeBase.new(BASE, FakeBaseAttributes(), {}, clock)


@pytest.fixture
async def slam_following_base(base: FakeBase, clock: ManualClock) -> FakeSlam:
    return await FakeSlam.new(NAME, FakeSlamAttributes(base="b"), {BASE: base}, clock)


async def test_position_follows_the_base(
    slam_following_base: FakeSlam, base: FakeBase, clock: ManualClock, serve: Serve
) -> None:
    async with serve(slam_following_base) as channel:
        client = SLAMClient("s", channel)
        assert await read_position(client) == pytest.approx((1875, -1250, 90))
        await clock.advance(10)
        assert await read_position(client) == pytest.approx((1875, -1250, 90))
        await base.set_velocity(Vector3(y=500), Vector3())
        await clock.advance(2)
        assert await read_position(client) == pytest.approx((1875, -250, 90))
        await base.set_velocity(Vector3(), Vector3(z=90))
        await clock.advance(1)
        await base.set_velocity(Vector3(y=500), Vector3())
        await clock.advance(1)
        assert await read_position(client) == pytest.approx((1375, -250, 180))
        status = await client.get_status()
        assert status["position_mm"] == pytest.approx([1375, -250])


async def read_position(client: SLAMClient) -> tuple[float, float, float]:
    pose = await client.get_position()
    return pose.x, pose.y, pose.theta


@pytest.mark.parametrize(
    "destination",
    [Pose(x=-1875, y=-1250, o_z=1), Pose(x=1875, y=1250, o_z=1, theta=180), Pose(x=1000, y=-1000)],
)
async def test_base_can_be_moved_on_the_map(
    slam_following_base: FakeSlam,
    base: FakeBase,
    clock: ManualClock,
    serve: Serve,
    destination: Pose,
) -> None:
    things = {BASE: base, NAME: slam_following_base}
    around = MachineAccess(things.__getitem__, lambda: things, None, lambda _: 0)
    name = ResourceName.parse("rdk:service:motion/m")
    motion = await BuiltinMotion.new(name, BuiltinMotionAttributes(), {}, around, clock)
    async with serve(motion) as channel:
        client = MotionClient("m", channel)
        await client.move_on_map("b", destination, "s")
        async with asyncio.timeout(60):
            while await client.list_plan_statuses(only_active_plans=True):
                await clock.advance(0.5)
        plan = (await client.get_plan("b")).current_plan_with_status
    await motion.close()
    assert plan.status.state == PlanState.PLAN_STATE_SUCCEEDED, plan.status.reason
    here = await slam_following_base.get_position()
    assert math.dist((here.x, here.y), (destination.x, destination.y)) < 100
    # The base arrived, too: only its wheels moved it.
    place = (await base.odometry()).pose
    assert (1875 + place.x, place.y - 1250) == pytest.approx((here.x, here.y))
    if destination.o_z:
        assert math.remainder(here.theta - destination.theta, 360) == pytest.approx(0, abs=1)


async def test_base_without_odometry_is_refused() -> None:
    with pytest.raises(Unsupported, match='cannot follow base "b", which does not report its pose'):
        await FakeSlam.new(NAME, FakeSlamAttributes(base="b"), {BASE: object()})


async def test_properties_state_and_status_of_the_service(client: SLAMClient) -> None:
    properties = await client.get_properties()
    assert properties.mapping_mode == MappingMode.MAPPING_MODE_CREATE_NEW_MAP
    assert not properties.cloud_slam
    assert properties.internal_state_file_type == ".json"
    state = json.loads(b"".join(await client.get_internal_state()))
    assert state["room"]["room_width_mm"] == 6000
    assert state["position_mm"] == pytest.approx([1875, -1250])
    status = await client.get_status()
    assert status["position_mm"] == pytest.approx([1875, -1250])
    assert status["map_bytes"] == sum(map(len, await client.get_point_cloud_map()))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: FakeSlamAttributes(room_width_mm=100_000, resolution_mm=5),
            "the map would have 26000000 points",
        ),
        (lambda: FakeSlamAttributes(room_depth_mm=1), "greater than or equal to 1000"),
        (
            lambda: FakeSlamAttributes(base="b", speed_mm_per_sec=1),
            'remove "speed_mm_per_sec": it has no effect if "base" is set',
        ),
    ],
)
def test_invalid_attributes_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        make()
