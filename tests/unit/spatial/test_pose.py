"""Poses, compared with 4x4 matrices."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from tests.unit.spatial.matrices import (
    max_difference,
    pose_matrix,
    random_pose,
    random_rotation,
    rotation_difference,
    to_scipy,
)

from cogwork.spatial.pose import Pose, Quaternion, unit_vector


def test_compose_matches_the_matrix_product() -> None:
    rng = random.Random(1)
    for _ in range(100):
        one, other = random_pose(rng), random_pose(rng)
        assert max_difference(one.compose(other), pose_matrix(one) @ pose_matrix(other)) < 1e-9


def test_inverse_composes_to_the_identity() -> None:
    rng = random.Random(2)
    for _ in range(100):
        pose = random_pose(rng)
        assert max_difference(pose.compose(pose.inverse()), np.eye(4)) < 1e-9
        assert max_difference(pose.inverse().compose(pose), np.eye(4)) < 1e-9


def test_transform_point_matches_the_matrix() -> None:
    rng = random.Random(3)
    for _ in range(100):
        pose, point = random_pose(rng), random_pose(rng).point
        expected = (pose_matrix(pose) @ [*point, 1])[:3]
        assert pose.transform_point(point) == pytest.approx(expected, abs=1e-9)


def test_identity_changes_nothing() -> None:
    assert Pose.identity().transform_point((1, 2, 3)) == (1, 2, 3)
    assert Pose.identity().compose(Pose.identity()) == Pose.identity()


def test_rotation_stays_normalized_over_100000_compositions() -> None:
    step = Pose((0.0, 0.0, 0.0), Quaternion.from_axis_angle((1, 2, 3), 0.1))
    pose = Pose.identity()
    for _ in range(100_000):
        pose = pose.compose(step)
    rotation = pose.rotation
    assert math.hypot(rotation.w, rotation.x, rotation.y, rotation.z) == pytest.approx(1, abs=1e-12)
    around = Quaternion.from_axis_angle((1, 2, 3), math.remainder(10_000.0, math.tau))
    assert rotation_difference(rotation, to_scipy(around)) < 1e-9


def test_rotation_is_counterclockwise_about_its_axis() -> None:
    quarter = Quaternion.from_axis_angle((0, 0, 5), math.pi / 2)
    assert quarter.rotate((1, 0, 0)) == pytest.approx((0, 1, 0))
    assert quarter.inverse().rotate((1, 0, 0)) == pytest.approx((0, -1, 0))
    assert quarter.angle == pytest.approx(math.pi / 2)


def test_quaternion_product_matches_scipy() -> None:
    rng = random.Random(4)
    for _ in range(100):
        one, other = random_pose(rng).rotation, random_pose(rng).rotation
        assert rotation_difference(one * other, to_scipy(one) * to_scipy(other)) < 1e-12


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
def test_normalized_works_for_any_length(scale: float) -> None:
    x, y, z, w = random_rotation(random.Random(5)).as_quat()
    made = Quaternion(w * scale, x * scale, y * scale, z * scale).normalized()
    assert (made.w, made.x, made.y, made.z) == pytest.approx((w, x, y, z), abs=1e-15)


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf])
def test_zero_or_non_finite_vector_raises(bad: float) -> None:
    with pytest.raises(ValueError, match="not zero"):
        unit_vector((0.0, bad, 0.0))
    with pytest.raises(ValueError, match="not zero"):
        Quaternion(0.0, bad, 0.0, 0.0).normalized()
