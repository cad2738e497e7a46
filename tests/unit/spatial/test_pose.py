"""Poses against 4x4 matrices."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from tests.unit.spatial.matrices import (
    apart,
    pose_matrix,
    random_pose,
    random_rotation,
    scipy_of,
    turned_apart,
)

from cogwork.spatial.pose import Pose, Quaternion, unit_vector


def test_one_pose_then_another_is_the_product_of_their_matrices() -> None:
    rng = random.Random(1)
    for _ in range(100):
        one, other = random_pose(rng), random_pose(rng)
        assert apart(one.compose(other), pose_matrix(one) @ pose_matrix(other)) < 1e-9


def test_the_inverse_leads_back() -> None:
    rng = random.Random(2)
    for _ in range(100):
        pose = random_pose(rng)
        assert apart(pose.compose(pose.inverse()), np.eye(4)) < 1e-9
        assert apart(pose.inverse().compose(pose), np.eye(4)) < 1e-9


def test_a_point_is_placed_as_by_the_matrix() -> None:
    rng = random.Random(3)
    for _ in range(100):
        pose, point = random_pose(rng), random_pose(rng).point
        wanted = (pose_matrix(pose) @ [*point, 1])[:3]
        assert pose.transform_point(point) == pytest.approx(wanted, abs=1e-9)


def test_nothing_turned_nothing_moved() -> None:
    assert Pose.identity().transform_point((1, 2, 3)) == (1, 2, 3)
    assert Pose.identity().compose(Pose.identity()) == Pose.identity()


def test_a_hundred_thousand_turns_do_not_wear_a_rotation_out() -> None:
    step = Pose((0.0, 0.0, 0.0), Quaternion.from_axis_angle((1, 2, 3), 0.1))
    pose = Pose.identity()
    for _ in range(100_000):
        pose = pose.compose(step)
    turned = pose.rotation
    assert math.hypot(turned.w, turned.x, turned.y, turned.z) == pytest.approx(1, abs=1e-12)
    around = Quaternion.from_axis_angle((1, 2, 3), math.remainder(10_000.0, math.tau))
    assert turned_apart(turned, scipy_of(around)) < 1e-9


def test_a_turn_is_counterclockwise_about_its_axis() -> None:
    quarter = Quaternion.from_axis_angle((0, 0, 5), math.pi / 2)
    assert quarter.rotate((1, 0, 0)) == pytest.approx((0, 1, 0))
    assert quarter.inverse().rotate((1, 0, 0)) == pytest.approx((0, -1, 0))
    assert quarter.angle == pytest.approx(math.pi / 2)


def test_rotations_follow_one_another_as_in_scipy() -> None:
    rng = random.Random(4)
    for _ in range(100):
        one, other = random_pose(rng).rotation, random_pose(rng).rotation
        assert turned_apart(one * other, scipy_of(one) * scipy_of(other)) < 1e-12


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_a_quaternion_of_any_length_is_made_one_long(scale: float) -> None:
    x, y, z, w = random_rotation(random.Random(5)).as_quat()
    made = Quaternion(w * scale, x * scale, y * scale, z * scale).normalized()
    assert (made.w, made.x, made.y, made.z) == pytest.approx((w, x, y, z), abs=1e-15)


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf])
def test_what_has_no_direction_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not zero"):
        unit_vector((0.0, bad, 0.0))
    with pytest.raises(ValueError, match="not zero"):
        Quaternion(0.0, bad, 0.0, 0.0).normalized()
