"""Inverse kinematics: joint positions for poses."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Sequence

import pytest
from tests.support.sizes import size
from tests.unit.spatial.arms import six_axes

from cogwork.spatial.inverse_kinematics import solve_inverse_kinematics
from cogwork.spatial.kinematics import Chain, Joint, JointType, Link, gantry_chain
from cogwork.spatial.pose import Pose, Quaternion

pytestmark = pytest.mark.long


def reaches(chain: Chain, inputs: Sequence[float] | None, target: Pose) -> bool:
    """Check the limits, 0.01 mm of position and 0.0001 radians of rotation."""
    assert inputs is not None
    chain.check_inputs(inputs)
    end = chain.pose(inputs)
    turned = (target.rotation * end.rotation.inverse()).angle
    return math.dist(end.point, target.point) <= 0.01 and turned <= 1e-4


@pytest.mark.parametrize("limit", [360, 170])
def test_random_reachable_poses_are_solved(limit: float) -> None:
    chain = six_axes(limit)
    rng = random.Random(limit)
    start = [0.0] * 6
    for _ in range(size(ci=30, full=300)):
        target = chain.pose([rng.uniform(low, high) for low, high in chain.limits])
        assert reaches(chain, solve_inverse_kinematics(chain, target, start), target)


def test_small_move_has_a_nearby_solution() -> None:
    chain = six_axes()
    rng = random.Random(2)
    for _ in range(50):
        start = [rng.uniform(-3, 3) for _ in range(6)]
        target = chain.pose([value + rng.uniform(-0.1, 0.1) for value in start])
        found = solve_inverse_kinematics(chain, target, start)
        assert found is not None
        assert reaches(chain, found, target)
        assert max(abs(one - other) for one, other in zip(found, start, strict=True)) < 1


def test_current_pose_returns_the_start() -> None:
    chain = six_axes()
    start = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6]
    assert solve_inverse_kinematics(chain, chain.pose(start), start) == start


def test_joint_stays_in_its_current_revolution() -> None:
    chain = six_axes()
    start = [0.1, -0.2, 0.3, -0.4, 0.5, math.tau - 0.3]
    target = chain.pose([*start[:5], -0.35])
    found = solve_inverse_kinematics(chain, target, start)
    assert found is not None
    assert found[5] == pytest.approx(math.tau - 0.35, abs=1e-3)


def test_solution_is_deterministic() -> None:
    chain = six_axes()
    target = chain.pose([2.0, -2.0, 1.5, 2.5, -1.0, 3.0])
    assert solve_inverse_kinematics(chain, target, [0.0] * 6) == solve_inverse_kinematics(
        chain, target, [0.0] * 6
    )


@pytest.mark.parametrize(
    "target",
    [
        Pose((5000.0, 0.0, 0.0), Quaternion.identity()),
        Pose((0.0, 0.0, math.nan), Quaternion.identity()),
    ],
    ids=["far away", "nowhere"],
)
def test_unreachable_pose_has_no_solution_and_fails_fast(target: Pose) -> None:
    before = time.process_time()
    assert solve_inverse_kinematics(six_axes(), target, [0.0] * 6) is None
    assert time.process_time() - before < 2


def test_pose_beyond_the_limits_has_no_solution() -> None:
    chain = Chain.from_elements(
        "elbow", [Joint("j", "world", JointType.REVOLUTE, (0, 0, 1), -1, 1), Link("l", "j")]
    )
    inside = Pose((0.0, 0.0, 0.0), Quaternion.from_axis_angle((0, 0, 1), 0.9))
    beyond = Pose((0.0, 0.0, 0.0), Quaternion.from_axis_angle((0, 0, 1), 1.1))
    assert reaches(chain, solve_inverse_kinematics(chain, inside, [0.0]), inside)
    assert solve_inverse_kinematics(chain, beyond, [0.0]) is None


def test_start_beyond_the_limits_is_clamped() -> None:
    chain = six_axes(90)
    target = chain.pose([0.1] * 6)
    assert reaches(chain, solve_inverse_kinematics(chain, target, [2.0] * 6), target)


def test_gantry_is_solved_exactly() -> None:
    chain = gantry_chain([300, 400, 500])
    target = chain.pose([300, 0, 250])
    assert solve_inverse_kinematics(chain, target, [0, 0, 0]) == pytest.approx(
        [300, 0, 250], abs=0.01
    )
    assert (
        solve_inverse_kinematics(chain, Pose((300, 0, 501), Quaternion.identity()), [0, 0, 0])
        is None
    )
    turned = Pose((1, 1, 1), Quaternion.from_axis_angle((0, 0, 1), 0.1))
    assert solve_inverse_kinematics(chain, turned, [0, 0, 0]) is None


def test_arm_on_a_rail_uses_both() -> None:
    rail = Joint("rail", "world", JointType.PRISMATIC, (0, 1, 0), 0, 3000)
    steps = [
        step if step.parent != "world" else Link("foot", "rail") for step in six_axes().elements
    ]
    first = six_axes().elements[0]
    assert isinstance(first, Joint)
    chain = Chain.from_elements(
        "both", [rail, *steps, Joint("joint1", "foot", first.kind, first.axis)]
    )
    target = chain.pose([2500, 0.5, -1.0, 1.2, 0.3, 0.7, 0.1])
    assert reaches(chain, solve_inverse_kinematics(chain, target, [0.0] * 7), target)


def test_chain_without_joints_reaches_only_its_pose() -> None:
    chain = Chain.from_elements(
        "post", [Link("top", "world", Pose((0, 0, 50), Quaternion.identity()))]
    )
    assert solve_inverse_kinematics(chain, chain.pose([]), []) == []
    assert solve_inverse_kinematics(chain, Pose.identity(), []) is None


def test_start_with_a_wrong_length_raises() -> None:
    with pytest.raises(ValueError):
        solve_inverse_kinematics(six_axes(), Pose.identity(), [0.0] * 5)
