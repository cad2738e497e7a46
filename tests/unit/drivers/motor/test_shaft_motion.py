from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.motor.shaft_motion import ShaftMotion

REST = ShaftMotion(start=0.0, since=10.0)

SPEED = st.floats(-100, 100)
TIME = st.floats(0, 1000)


def test_motion_at_rest_keeps_its_position() -> None:
    assert (REST.position_at(10), REST.position_at(99), REST.speed_at(99)) == (0, 0, 0)
    assert REST.seconds == math.inf


def test_position_changes_with_speed_and_time() -> None:
    spinning = REST.continue_at(-30, 10)
    assert spinning.position_at(12) == -1
    assert spinning.continue_at(60, 12).position_at(13) == 0


@pytest.mark.parametrize(("end", "rpm"), [(2, 60), (-2, 60), (2, -60)])
def test_motion_ends_at_its_target(end: float, rpm: float) -> None:
    motion = REST.continue_to(end, rpm, 10)
    assert motion.seconds == 2
    assert motion.position_at(11) == end / 2
    assert motion.speed_at(11) == math.copysign(60, end)
    assert (motion.position_at(12), motion.position_at(99), motion.speed_at(12)) == (end, end, 0)


def test_motion_to_the_current_position_has_arrived() -> None:
    motion = REST.continue_to(0, 60, 10)
    assert (motion.seconds, motion.position_at(10), motion.speed_at(10)) == (0, 0, 0)


def test_early_timer_does_not_miss_the_end() -> None:
    motion = REST.continue_to(2, 60, 10)
    assert motion.stop_at_end(11.999999) == ShaftMotion(start=2, since=11.999999)


def test_shift_zero_changes_positions_but_not_the_motion() -> None:
    motion = REST.continue_to(4, 60, 10).shift_zero(0.5, 11)
    assert motion.position_at(11) == -0.5
    assert motion.seconds == 4
    assert motion.position_at(99) == 2.5
    assert REST.continue_at(60, 10).shift_zero(0, 11).position_at(12) == 1


@given(SPEED, TIME, SPEED, TIME, st.floats(-10, 10))
def test_position_is_continuous_across_commands(
    first: float, soon: float, second: float, later: float, end: float
) -> None:
    """Every new command continues from the current position of the shaft."""
    now = 10 + soon
    motion = REST.continue_at(first, 10)
    for following in (motion.continue_at(second, now), motion.continue_to(end, second or 1, now)):
        assert following.position_at(now) == pytest.approx(motion.position_at(now))
        reached = following.position_at(now + later)
        turned = abs(following.rpm) / 60 * later
        assert abs(reached - following.start) <= turned + 1e-6
