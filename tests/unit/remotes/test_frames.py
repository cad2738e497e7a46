"""The frames of another machine on this one."""

from __future__ import annotations

import pytest
from viam.gen.common.v1 import common_pb2 as common

from cogwork.config.schema.machine import RemoteConfig
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.spec import Spec
from cogwork.remotes.frames import place_frames
from cogwork.remotes.names import MAX_HOPS, MAX_RESOURCES, REMOTE_MODEL, RemoteName
from cogwork.robot.placed_frame import ARM
from cogwork.spatial.frame_tree import FrameTree

CAMERA = Api.parse("rdk:component:camera")
FRAME = {"parent": "table", "translation": {"x": 100}}


def remote(frame: object = FRAME, prefix: str = "") -> RemoteConfig:
    given = {"name": "line", "address": "line:8080", "frame": frame, "prefix": prefix}
    return RemoteConfig.model_validate(given)


def resource(api: Api, name: str) -> Spec:
    here = ResourceName.from_short(api, f"line:left_{name}")
    return Spec(here, REMOTE_MODEL, RemoteName("line", name))


def transform(name: str, parent: str, x: float = 0.0) -> common.Transform:
    pose = common.Pose(x=x, o_z=1)
    observer = common.PoseInFrame(reference_frame=parent, pose=pose)
    return common.Transform(reference_frame=name, pose_in_observer_frame=observer)


def test_the_world_of_a_remote_is_a_frame_here() -> None:
    world, camera, lens = place_frames(
        remote(), [transform("camera", "world", 5), transform("lens", "camera", 1)], []
    )
    assert (world.name, world.parent, world.pose.point) == ("line_world", "table", (100, 0, 0))
    assert (camera.name, camera.parent, camera.pose.point) == ("camera", "line_world", (5, 0, 0))
    assert (lens.name, lens.parent) == ("lens", "camera")


def test_a_remote_without_a_frame_adds_none() -> None:
    assert place_frames(remote(frame=None), [transform("camera", "world")], []) == ()


def test_names_get_the_prefix() -> None:
    frames = place_frames(
        remote(prefix="left_"),
        [transform("arm", "world"), transform("lens", "arm"), transform("tool", "cell_world")],
        [resource(ARM, "cell:arm"), resource(CAMERA, "lens")],
    )
    _, arm, lens, tool = frames
    assert (arm.name, arm.parent) == ("left_arm", "line_world")
    assert str(arm.component) == "rdk:component:arm/line:left_cell:arm"
    assert (lens.parent, lens.component) == ("left_arm", None)
    assert tool.parent == "left_cell_world"


def test_a_geometry_comes_along() -> None:
    given = transform("box", "world")
    given.physical_object.sphere.radius_mm = 7
    frame = place_frames(remote(), [given], [])[1]
    assert frame.geometry is not None
    assert frame.geometry.sphere.radius_mm == 7


@pytest.mark.parametrize(
    "bad",
    [
        transform("", "world"),
        transform("n" * 600, "world"),
        transform("far", "world", float("nan")),
        transform("self", "self"),
        transform("line_world", "world"),
    ],
    ids=["no name", "long name", "not a number", "its own parent", "the name of its world"],
)
def test_what_cannot_be_used_is_left_out(bad: common.Transform) -> None:
    frames = place_frames(remote(), [bad, transform("good", "world")], [])
    assert [frame.name for frame in frames] == ["line_world", "good"]


def test_machines_that_are_remotes_of_each_other_have_a_bounded_number_of_frames() -> None:
    """Each machine tells the other what it was told."""
    transforms = [transform("camera", "world")]
    for _ in range(50):
        frames = place_frames(remote(frame={"parent": "world"}, prefix="a_"), transforms, [])
        transforms = [
            transform("camera", "world"),
            *(transform(frame.name, frame.parent) for frame in frames),
        ]
    assert len(frames) <= 2 * MAX_HOPS + 2


def test_a_long_chain_of_frames_is_bounded() -> None:
    chain = [transform(f"f{n}", f"f{n - 1}" if n else "world") for n in range(2 * MAX_RESOURCES)]
    frames = place_frames(remote(frame={"parent": "world"}), chain, [])
    assert 50 < len(frames) < 200
    assert not FrameTree(frame.part for frame in frames).broken
