from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.joint_trajectory import Joints, JointTrajectory, TrajectorySegment

REST = JointTrajectory.at_rest((0.0, 0.0), 10.0)

PLACE = st.tuples(st.floats(-100, 100), st.floats(-100, 100))
SPEED = st.tuples(st.floats(0.1, 100), st.floats(0.1, 100))


def test_trajectory_at_rest_keeps_its_position() -> None:
    assert (REST.position_at(0), REST.position_at(10), REST.position_at(99)) == ((0, 0),) * 3
    assert REST.has_ended(10)
    assert REST.remaining_seconds(10) == 0


def test_move_through_finishes_all_joints_together() -> None:
    course = REST.move_through([(10.0, 2.0), (10.0, -2.0)], (5.0, 4.0), 10)
    assert [course.position_at(now) for now in (11, 12, 12.5, 13)] == [
        (5, 1),
        (10, 2),
        (10, 0),
        (10, -2),
    ]
    assert (course.has_ended(12.99), course.has_ended(13)) == (False, True)


def test_move_independently_finishes_each_joint_in_its_own_time() -> None:
    course = REST.move_independently((10.0, -2.0), (5.0, 2.0), 10)
    assert [course.position_at(now) for now in (10.5, 11, 11.5, 12)] == [
        (2.5, -1),
        (5, -2),
        (7.5, -2),
        (10, -2),
    ]
    assert course.seconds == 2


def test_new_trajectory_continues_from_the_current_position() -> None:
    under_way = REST.move_through([(10.0, 0.0)], (1.0, 1.0), 10)
    back = under_way.move_through([(0.0, 0.0)], (1.0, 1.0), 14)
    assert back.position_at(14) == (4, 0)
    assert back.seconds == 4


def test_ramp_starts_and_ends_slowly() -> None:
    course = JointTrajectory.at_rest((0.0,), 0).follow_segments(
        [TrajectorySegment((12.0,), 4, ramp=1)], 0
    )
    places = [course.position_at(now)[0] for now in (0, 0.5, 1, 2, 3, 3.5, 4)]
    assert places == pytest.approx([0, 0.5, 2, 6, 10, 11.5, 12])


def test_points_can_be_appended() -> None:
    course = JointTrajectory.at_rest((0.0,), 10).append_points([1.0], [(5.0,)], 10)
    longer = course.append_points([2.0, 4.0], [(5.0,), (9.0,)], 10.5)
    assert [longer.position_at(now) for now in (10.5, 11, 12, 13, 14)] == [
        (2.5,),
        (5,),
        (5,),
        (7,),
        (9,),
    ]


def test_late_points_keep_their_durations() -> None:
    """To catch up, the joint would have to exceed its speed."""
    course = JointTrajectory.at_rest((0.0,), 10).append_points([1.0], [(5.0,)], 10)
    late = course.append_points([2.0], [(7.0,)], 20)
    assert [late.position_at(now) for now in (20, 20.5, 21)] == [(5,), (6,), (7,)]


def test_passed_points_are_dropped() -> None:
    course = JointTrajectory.at_rest((0.0,), 0)
    for number in range(1, 1000):
        course = course.append_points([float(number)], [(float(number),)], number - 1)
    assert len(course.points) < 5
    assert course.position_at(998.5) == (998.5,)


@given(PLACE, PLACE, SPEED, st.booleans())
def test_joints_do_not_exceed_their_speeds(
    start: Joints, end: Joints, speeds: Joints, together: bool
) -> None:
    rest = JointTrajectory.at_rest(start, 0)
    course = (
        rest.move_through([end], speeds, 0) if together else rest.move_independently(end, speeds, 0)
    )
    moments = [course.seconds * share / 16 for share in range(17)]
    for before, after in itertools.pairwise(moments):
        ways = zip(course.position_at(before), course.position_at(after), speeds, strict=True)
        for of, to, speed in ways:
            assert abs(to - of) <= speed * (after - before) + 1e-6
    assert course.position_at(course.seconds) == end
