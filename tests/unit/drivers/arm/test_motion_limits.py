from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from viam.proto.component.arm import MoveOptions

from cogwork.drivers.arm.motion_limits import MotionLimits
from cogwork.drivers.joint_trajectory import Joints, JointTrajectory
from cogwork.spatial.pose import Vector

PIECES = 200

PLACE = st.tuples(st.floats(-100, 100), st.floats(-100, 100))
LIMIT = st.tuples(st.floats(1, 100), st.floats(1, 100))


def fixed_tool_position(_: Joints) -> Vector:
    return (0.0, 0.0, 0.0)


def tool_on_a_circle(joints: Joints) -> Vector:
    """The first joint rotates a link of 100 mm."""
    angle = math.radians(joints[0])
    return (100 * math.cos(angle), 100 * math.sin(angle), 0.0)


@given(PLACE, PLACE, LIMIT, LIMIT)
def test_plan_obeys_joint_speed_and_acceleration_limits(
    start: Joints, end: Joints, speeds: Joints, accelerations: Joints
) -> None:
    (leg,) = MotionLimits(speeds, accelerations).plan_segments(start, [end], fixed_tool_position)
    course = JointTrajectory.at_rest(start, 0).follow_segments([leg], 0)
    piece = max(course.seconds, 1e-3) / PIECES
    moments = [number * piece for number in range(-1, PIECES + 2)]
    places = [course.position_at(moment) for moment in moments]
    for number in range(2):
        velocities = [(to[number] - of[number]) / piece for of, to in itertools.pairwise(places)]
        assert max(map(abs, velocities)) <= speeds[number] * 1.001 + 1e-6
        changes = [abs(to - of) / piece for of, to in itertools.pairwise(velocities)]
        assert max(changes) <= accelerations[number] * 1.001 + 1e-3


def test_plan_takes_the_minimum_time() -> None:
    (leg,) = MotionLimits((10.0,), (10.0,)).plan_segments((0.0,), [(20.0,)], fixed_tool_position)
    assert (leg.seconds, leg.ramp) == pytest.approx((3, 1))
    (short,) = MotionLimits((10.0,), (10.0,)).plan_segments((0.0,), [(2.5,)], fixed_tool_position)
    assert (short.seconds, short.ramp) == pytest.approx((1, 0.5))


def test_limits_of_zero_are_none() -> None:
    """Clients in Go send zeros for limits that were not set."""
    zeros = MoveOptions(max_vel_degs_per_sec=0, max_acc_degs_per_sec2=0, max_tcp_speed=0)
    assert MotionLimits.from_options(zeros, 60.0, 2) == MotionLimits.from_options(None, 60.0, 2)
    mixed = MoveOptions(max_vel_degs_per_sec_joints=[0, 30])
    assert MotionLimits.from_options(mixed, 60.0, 2).speeds == (60.0, 30.0)


def test_tool_speed_limit_can_determine_the_duration() -> None:
    quarter = math.pi / 2 * 100
    (leg,) = MotionLimits((90.0,), (math.inf,), tool_speed=quarter / 4).plan_segments(
        (0.0,), [(90.0,)], tool_on_a_circle
    )
    assert leg.seconds == pytest.approx(4, rel=1e-3)
    (turning,) = MotionLimits((90.0,), (math.inf,), tool_speed=1.0).plan_segments(
        (0.0,), [(90.0,)], fixed_tool_position
    )
    assert turning.seconds == pytest.approx(1)


def test_plan_to_the_current_position_takes_no_time() -> None:
    (leg,) = MotionLimits((1.0,), (math.inf,)).plan_segments((5.0,), [(5.0,)], fixed_tool_position)
    assert leg.seconds == 0
