from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib.const import Status
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from viam.components.pose_tracker.client import PoseTrackerClient
from viam.proto.common import Pose

from cogwork.core.clock import ManualClock
from cogwork.drivers.pose_tracker.attributes import FakePoseTrackerAttributes
from cogwork.drivers.pose_tracker.fake import FakePoseTracker
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:component:pose_tracker/p")
BODIES = [
    {
        "name": "ball",
        "path": "circle",
        "center": {"x": 100, "z": 30},
        "radius_mm": 50,
        "period": "8s",
    },
    {"name": "cart", "path": "line", "start": {"y": 10}, "end": {"y": 50}, "period": "4s"},
    {"name": "post", "path": "still", "at": {"x": 1, "y": 2, "z": 3}},
]


@pytest.fixture
async def client(clock: ManualClock, serve: Serve) -> AsyncIterator[PoseTrackerClient]:
    attributes = FakePoseTrackerAttributes.model_validate(
        {"bodies": BODIES, "reference_frame": "ceiling"}
    )
    tracker = await FakePoseTracker.new(NAME, attributes, {}, clock)
    async with serve(tracker) as channel:
        yield PoseTrackerClient("p", channel)


async def read_pose(client: PoseTrackerClient, name: str) -> Pose:
    found = await client.get_poses([name])
    assert list(found) == [name]
    return found[name].pose


def approximate_point(read_pose: Pose) -> Any:
    return pytest.approx((read_pose.x, read_pose.y, read_pose.z))


@pytest.mark.parametrize(
    ("seconds", "x", "y", "theta"),
    [(0, 150, 0, 90), (2, 100, 50, 180), (4, 50, 0, -90), (6, 100, -50, 0), (8, 150, 0, 90)],
)
async def test_circling_body_follows_its_circle_and_faces_ahead(
    client: PoseTrackerClient, clock: ManualClock, seconds: float, x: float, y: float, theta: float
) -> None:
    await clock.advance(seconds)
    found = await read_pose(client, "ball")
    assert (x, y, 30.0) == approximate_point(found)
    assert (found.o_x, found.o_y, found.o_z) == (0, 0, 1)
    assert math.remainder(found.theta - theta, 360) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("seconds", "y"), [(0, 10), (1, 30), (2, 50), (3, 30), (4, 10), (41, 30)])
async def test_body_on_a_line_goes_back_and_forth(
    client: PoseTrackerClient, clock: ManualClock, seconds: float, y: float
) -> None:
    await clock.advance(seconds)
    assert (0, y, 0) == approximate_point(await read_pose(client, "cart"))


async def test_still_body_stays(client: PoseTrackerClient, clock: ManualClock) -> None:
    await clock.advance(1234.5)
    assert approximate_point(await read_pose(client, "post")) == (1, 2, 3)


async def test_empty_list_of_names_returns_all_bodies(client: PoseTrackerClient) -> None:
    poses = await client.get_poses([])
    assert set(poses) == {"ball", "cart", "post"}
    assert {each.reference_frame for each in poses.values()} == {"ceiling"}
    assert set(await client.get_poses(["post", "ball", "post"])) == {"post", "ball"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bal", 'pose_tracker "p" has no body "bal": did you mean "ball"?'),
        ("xyz", 'pose_tracker "p" has no body "xyz": it tracks ball, cart, post'),
        ("", 'pose_tracker "p" has no body "": it tracks ball, cart, post'),
    ],
)
async def test_unknown_body_is_refused_with_suggestions(
    client: PoseTrackerClient, name: str, words: str
) -> None:
    with refused() as told:
        await client.get_poses(["ball", name])
    assert (told.status, told.words) == (Status.NOT_FOUND, words)


async def test_status_of_the_tracker(client: PoseTrackerClient) -> None:
    assert await client.get_geometries() == []
    assert await client.get_status() == {
        "bodies": ["ball", "cart", "post"],
        "reference_frame": "ceiling",
    }


async def test_list_of_bodies_may_be_empty(clock: ManualClock) -> None:
    tracker = await FakePoseTracker.new(NAME, FakePoseTrackerAttributes(bodies=[]), {}, clock)
    assert await tracker.get_poses([]) == {}


@pytest.mark.parametrize(
    "bodies",
    [
        [{"name": "a", "path": "still"}, {"name": "a", "path": "circle"}],
        [{"name": "a", "path": "zigzag"}],
        [{"name": "a"}],
        [{"name": "", "path": "still"}],
        [{"name": "a", "path": "circle", "radius_mm": 0}],
        [{"name": "a", "path": "circle", "period": "0s"}],
    ],
)
def test_invalid_attributes_are_refused(bodies: list[dict[str, object]]) -> None:
    with pytest.raises(ValidationError):
        FakePoseTrackerAttributes.model_validate({"bodies": bodies})
