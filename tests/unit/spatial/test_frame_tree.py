"""The frames of a machine, against chains of matrices."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spatial.arms import six_axes
from tests.unit.spatial.matrices import (
    TYPES,
    apart,
    matrix_of,
    pose_matrix,
    random_orientation,
    random_point,
    random_pose,
)

from cogwork.spatial.frame_tree import FramePart, FrameTree, UnknownFrame
from cogwork.spatial.kinematics import gantry_chain
from cogwork.spatial.orientation import parse_orientation
from cogwork.spatial.pose import Pose, Quaternion

JOINTS = [0.3, -1.0, 1.2, 0.4, -0.7, 2.0]


def at(x: float, y: float = 0.0, z: float = 0.0) -> Pose:
    return Pose((x, y, z), Quaternion.identity())


def test_a_thousand_nested_frames_of_all_five_types_are_where_the_matrices_say_to_a_millionth() -> (
    None
):
    """Millimetres and entries of the rotation matrix alike, in the world and between frames."""
    rng = random.Random(1000)
    parts: list[FramePart] = []
    wanted = {"world": np.eye(4)}
    for number in range(1000):
        value, rotation = random_orientation(TYPES[number % 5], rng)
        point = random_point(rng, 100.0)
        parent = f"f{number - 1}" if number else "world"
        turned = parse_orientation(TYPES[number % 5], value)
        parts.append(FramePart(f"f{number}", parent, Pose(point, turned)))
        wanted[f"f{number}"] = wanted[parent] @ matrix_of(point, rotation)
    rng.shuffle(parts)
    tree = FrameTree(parts)
    assert len(tree.path("f999")) == 1001
    for name, matrix in wanted.items():
        assert apart(tree.pose(name, {}), matrix) < 1e-6
    for _ in range(200):
        source, destination = rng.sample(sorted(wanted), 2)
        pose = random_pose(rng)
        there = np.linalg.inv(wanted[destination]) @ wanted[source] @ pose_matrix(pose)
        assert apart(tree.transform(pose, source, destination, {}), there) < 1e-6


def test_a_thousand_frames_on_random_parents() -> None:
    rng = random.Random(2)
    parts: list[FramePart] = []
    wanted = {"world": np.eye(4)}
    for number in range(1000):
        parent = rng.choice(list(wanted))
        part = FramePart(f"f{number}", parent, random_pose(rng))
        parts.append(part)
        wanted[part.name] = wanted[parent] @ pose_matrix(part.pose)
    rng.shuffle(parts)
    tree = FrameTree(parts)
    assert all(apart(tree.pose(name, {}), matrix) < 1e-6 for name, matrix in wanted.items())


def test_what_is_on_an_arm_rides_on_its_end() -> None:
    arm, rng = six_axes(), random.Random(3)
    base, hand, shelf = random_pose(rng), random_pose(rng), random_pose(rng)
    tree = FrameTree(
        [
            FramePart("hand", "arm", hand),
            FramePart("arm", "world", base, arm),
            FramePart("shelf", "arm_origin", shelf),
        ]
    )
    end = pose_matrix(base) @ pose_matrix(arm.pose(JOINTS))
    inputs = {"arm": JOINTS}
    assert apart(tree.pose("arm_origin", inputs), pose_matrix(base)) < 1e-9
    assert apart(tree.pose("arm", inputs), end) < 1e-9
    assert apart(tree.pose("hand", inputs), end @ pose_matrix(hand)) < 1e-9
    assert apart(tree.pose("shelf", {}), pose_matrix(base) @ pose_matrix(shelf)) < 1e-9
    assert tree.path("hand") == ("world", "arm_origin", "arm", "hand")
    assert tree.frames == ("world", "arm_origin", "arm", "hand", "shelf")
    seen = tree.transform(Pose.identity(), "hand", "arm_origin", inputs)
    assert apart(seen, pose_matrix(arm.pose(JOINTS)) @ pose_matrix(hand)) < 1e-9


def test_an_arm_on_a_gantry() -> None:
    tree = FrameTree(
        [
            FramePart("arm", "rail", at(0, 0, 10), six_axes()),
            FramePart("rail", "world", at(1, 2, 3), gantry_chain([5000])),
        ]
    )
    inputs = {"rail": [1000.0], "arm": JOINTS}
    assert tree.pose("arm_origin", inputs).point == pytest.approx((1001, 2, 13))
    end = six_axes().pose(JOINTS).point
    assert tree.transform(Pose.identity(), "arm", "arm_origin", inputs).point == pytest.approx(end)


def test_what_both_frames_ride_on_need_not_be_known() -> None:
    tree = FrameTree(
        [
            FramePart("arm", "world", at(1), six_axes()),
            FramePart("eye", "arm", at(10)),
            FramePart("hand", "arm", at(0, 20)),
        ]
    )
    assert tree.transform(Pose.identity(), "eye", "hand", {}).point == pytest.approx((10, -20, 0))
    with pytest.raises(ValueError, match='the joint positions of "arm" are required'):
        tree.pose("eye", {})
    with pytest.raises(ValueError, match="takes 6 joint positions, not 1"):
        tree.pose("eye", {"arm": [0.0]})


def test_from_a_frame_to_itself_nothing_changes() -> None:
    tree = FrameTree([FramePart("a", "world", at(5))])
    pose = random_pose(random.Random(4))
    assert apart(tree.transform(pose, "a", "a", {}), pose_matrix(pose)) < 1e-12
    assert tree.pose("world", {}) == Pose.identity()


def test_parents_come_first() -> None:
    parts = [FramePart("c", "b", at(3)), FramePart("x", "world", at(9)), FramePart("b", "a", at(2))]
    tree = FrameTree([*parts, FramePart("a", "world", at(1))])
    assert [part.name for part in tree.parts] == ["a", "b", "c", "x"]
    assert tree.pose("c", {}).point == (6, 0, 0)


def test_broken_parts_are_left_out_and_the_others_stay() -> None:
    tree = FrameTree(
        [
            FramePart("fine", "world", at(1)),
            FramePart("lost", "nowhere", at(1)),
            FramePart("rider", "lost", at(1)),
            FramePart("self", "self", at(1)),
            FramePart("one", "two", at(1)),
            FramePart("two", "three", at(1)),
            FramePart("three", "one", at(1)),
            FramePart("tail", "one", at(1)),
            FramePart("fine", "world", at(2)),
            FramePart("world", "fine", at(1)),
            FramePart("", "world", at(1)),
        ]
    )
    assert [part.name for part in tree.parts] == ["fine"]
    assert tree.pose("fine", {}).point == (1, 0, 0)
    assert tree.broken == {
        "lost": 'its parent "nowhere" is not a frame',
        "rider": 'its parent "lost" is not connected to world',
        "self": 'circular parents: "self" -> "self"',
        "one": 'circular parents: "one" -> "two" -> "three" -> "one"',
        "two": 'circular parents: "two" -> "three" -> "one" -> "two"',
        "three": 'circular parents: "three" -> "one" -> "two" -> "three"',
        "tail": 'its parent "one" is not connected to world',
        "fine": 'there are two frames called "fine"; using the first',
        "world": '"world" is not a valid name; choose another',
        "": '"" is not a valid name; choose another',
    }


def test_the_base_of_a_chain_is_a_name_that_is_taken() -> None:
    tree = FrameTree(
        [FramePart("arm", "world", at(1), six_axes()), FramePart("arm_origin", "world", at(2))]
    )
    assert tree.broken == {
        "arm_origin": 'there are two frames called "arm_origin"; using the first'
    }
    assert tree.pose("arm_origin", {}).point == (1, 0, 0)


def test_a_frame_that_is_not_there_is_named_with_what_is() -> None:
    tree = FrameTree([FramePart("camera", "world", at(1)), FramePart("lost", "nowhere", at(1))])
    with pytest.raises(UnknownFrame, match='no frame "camrea": did you mean "camera"') as raised:
        tree.pose("camrea", {})
    assert raised.value.name == "camrea"
    with pytest.raises(UnknownFrame, match="the frames are world, camera"):
        tree.path("zzz")
    with pytest.raises(
        UnknownFrame, match='"lost" is not connected to world: its parent "nowhere" is not a'
    ):
        tree.transform(Pose.identity(), "lost", "camera", {})
    with pytest.raises(LookupError):
        tree.transform(Pose.identity(), "camera", "lost", {})


def test_extra_frames_are_in_a_tree_of_their_own() -> None:
    tree = FrameTree([FramePart("a", "world", at(1)), FramePart("lost", "box", at(5))])
    more = tree.with_extra([FramePart("box", "a", at(10)), FramePart("a", "world", at(99))])
    assert more.pose("box", {}).point == (11, 0, 0)
    assert more.pose("lost", {}).point == (16, 0, 0)
    assert list(more.broken) == ["a"]
    assert more.pose("a", {}).point == (1, 0, 0)
    assert tree.frames == ("world", "a")


names = st.sampled_from(["world", "a", "b", "c", "d", "e", "a_origin", ""])
some_parts = st.builds(
    FramePart, names, names, st.just(at(1)), st.sampled_from([None, gantry_chain([9.0])])
)


@given(st.lists(some_parts, max_size=8))
def test_every_part_is_placed_or_has_a_reason(parts: list[FramePart]) -> None:
    tree = FrameTree(parts)
    placed = {part.name for part in tree.parts}
    assert placed | set(tree.broken) == {part.name for part in parts}
    inputs = {part.name: [0.0] for part in parts}
    seen = {"world"}
    for part in tree.parts:
        assert part.parent in seen
        seen.update(part.frames)
        assert tree.pose(part.name, inputs).point[0] >= 1
    assert tuple(sorted(seen)) == tuple(sorted(tree.frames))
