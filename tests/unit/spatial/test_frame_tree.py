"""The frame tree, compared with chains of matrices."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.spatial.arms import six_axes
from tests.unit.spatial.matrices import (
    TYPES,
    make_matrix,
    max_difference,
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


def make_pose(x: float, y: float = 0.0, z: float = 0.0) -> Pose:
    return Pose((x, y, z), Quaternion.identity())


@pytest.mark.long
def test_1000_nested_frames_of_all_types_match_the_matrices() -> None:
    """This holds for millimeters and rotation entries, in the world and between frames."""
    rng = random.Random(1000)
    parts: list[FramePart] = []
    expected = {"world": np.eye(4)}
    for number in range(1000):
        value, rotation = random_orientation(TYPES[number % 5], rng)
        point = random_point(rng, 100.0)
        parent = f"f{number - 1}" if number else "world"
        quaternion = parse_orientation(TYPES[number % 5], value)
        parts.append(FramePart(f"f{number}", parent, Pose(point, quaternion)))
        expected[f"f{number}"] = expected[parent] @ make_matrix(point, rotation)
    rng.shuffle(parts)
    tree = FrameTree(parts)
    assert len(tree.path("f999")) == 1001
    for name, matrix in expected.items():
        assert max_difference(tree.pose(name, {}), matrix) < 1e-6
    for _ in range(200):
        source, destination = rng.sample(sorted(expected), 2)
        pose = random_pose(rng)
        there = np.linalg.inv(expected[destination]) @ expected[source] @ pose_matrix(pose)
        assert max_difference(tree.transform(pose, source, destination, {}), there) < 1e-6


def test_1000_frames_with_random_parents_match_the_matrices() -> None:
    rng = random.Random(2)
    parts: list[FramePart] = []
    expected = {"world": np.eye(4)}
    for number in range(1000):
        parent = rng.choice(list(expected))
        part = FramePart(f"f{number}", parent, random_pose(rng))
        parts.append(part)
        expected[part.name] = expected[parent] @ pose_matrix(part.pose)
    rng.shuffle(parts)
    tree = FrameTree(parts)
    assert all(
        max_difference(tree.pose(name, {}), matrix) < 1e-6 for name, matrix in expected.items()
    )


def test_frames_on_an_arm_follow_its_end() -> None:
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
    assert max_difference(tree.pose("arm_origin", inputs), pose_matrix(base)) < 1e-9
    assert max_difference(tree.pose("arm", inputs), end) < 1e-9
    assert max_difference(tree.pose("hand", inputs), end @ pose_matrix(hand)) < 1e-9
    assert max_difference(tree.pose("shelf", {}), pose_matrix(base) @ pose_matrix(shelf)) < 1e-9
    assert tree.path("hand") == ("world", "arm_origin", "arm", "hand")
    assert tree.frames == ("world", "arm_origin", "arm", "hand", "shelf")
    seen = tree.transform(Pose.identity(), "hand", "arm_origin", inputs)
    assert max_difference(seen, pose_matrix(arm.pose(JOINTS)) @ pose_matrix(hand)) < 1e-9


def test_arm_on_a_gantry_follows_it() -> None:
    tree = FrameTree(
        [
            FramePart("arm", "rail", make_pose(0, 0, 10), six_axes()),
            FramePart("rail", "world", make_pose(1, 2, 3), gantry_chain([5000])),
        ]
    )
    inputs = {"rail": [1000.0], "arm": JOINTS}
    assert tree.pose("arm_origin", inputs).point == pytest.approx((1001, 2, 13))
    end = six_axes().pose(JOINTS).point
    assert tree.transform(Pose.identity(), "arm", "arm_origin", inputs).point == pytest.approx(end)


def test_transform_needs_no_inputs_of_a_common_ancestor() -> None:
    tree = FrameTree(
        [
            FramePart("arm", "world", make_pose(1), six_axes()),
            FramePart("eye", "arm", make_pose(10)),
            FramePart("hand", "arm", make_pose(0, 20)),
        ]
    )
    assert tree.transform(Pose.identity(), "eye", "hand", {}).point == pytest.approx((10, -20, 0))
    with pytest.raises(
        ValueError, match='cannot compute the pose of "arm": its joint positions are unknown'
    ):
        tree.pose("eye", {})
    with pytest.raises(ValueError, match="takes 6 joint positions, not 1"):
        tree.pose("eye", {"arm": [0.0]})


def test_transform_to_the_same_frame_changes_nothing() -> None:
    tree = FrameTree([FramePart("a", "world", make_pose(5))])
    pose = random_pose(random.Random(4))
    assert max_difference(tree.transform(pose, "a", "a", {}), pose_matrix(pose)) < 1e-12
    assert tree.pose("world", {}) == Pose.identity()


def test_parts_list_parents_first() -> None:
    parts = [
        FramePart("c", "b", make_pose(3)),
        FramePart("x", "world", make_pose(9)),
        FramePart("b", "a", make_pose(2)),
    ]
    tree = FrameTree([*parts, FramePart("a", "world", make_pose(1))])
    assert [part.name for part in tree.parts] == ["a", "b", "c", "x"]
    assert tree.pose("c", {}).point == (6, 0, 0)


def test_broken_parts_are_reported_and_left_out() -> None:
    tree = FrameTree(
        [
            FramePart("fine", "world", make_pose(1)),
            FramePart("lost", "nowhere", make_pose(1)),
            FramePart("rider", "lost", make_pose(1)),
            FramePart("self", "self", make_pose(1)),
            FramePart("one", "two", make_pose(1)),
            FramePart("two", "three", make_pose(1)),
            FramePart("three", "one", make_pose(1)),
            FramePart("tail", "one", make_pose(1)),
            FramePart("fine", "world", make_pose(2)),
            FramePart("world", "fine", make_pose(1)),
            FramePart("", "world", make_pose(1)),
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


def test_origin_frame_name_of_a_chain_is_reserved() -> None:
    tree = FrameTree(
        [
            FramePart("arm", "world", make_pose(1), six_axes()),
            FramePart("arm_origin", "world", make_pose(2)),
        ]
    )
    assert tree.broken == {
        "arm_origin": 'there are two frames called "arm_origin"; using the first'
    }
    assert tree.pose("arm_origin", {}).point == (1, 0, 0)


def test_unknown_frame_raises_with_a_hint() -> None:
    tree = FrameTree(
        [FramePart("camera", "world", make_pose(1)), FramePart("lost", "nowhere", make_pose(1))]
    )
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


def test_with_extra_returns_a_new_tree() -> None:
    tree = FrameTree(
        [FramePart("a", "world", make_pose(1)), FramePart("lost", "box", make_pose(5))]
    )
    more = tree.with_extra(
        [FramePart("box", "a", make_pose(10)), FramePart("a", "world", make_pose(99))]
    )
    assert more.pose("box", {}).point == (11, 0, 0)
    assert more.pose("lost", {}).point == (16, 0, 0)
    assert list(more.broken) == ["a"]
    assert more.pose("a", {}).point == (1, 0, 0)
    assert tree.frames == ("world", "a")


names = st.sampled_from(["world", "a", "b", "c", "d", "e", "a_origin", ""])
some_parts = st.builds(
    FramePart, names, names, st.just(make_pose(1)), st.sampled_from([None, gantry_chain([9.0])])
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
