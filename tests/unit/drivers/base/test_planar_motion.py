from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.base.planar_motion import REST, BasePose, Leg, PlanarMotion, Speed

MODEST = st.floats(-1000, 1000)


def approximately(place: BasePose) -> object:
    return pytest.approx(numbers(place), abs=1e-6)


def numbers(place: BasePose) -> tuple[float, float, float]:
    return place.x, place.y, place.heading


def test_moving_forward_increases_y() -> None:
    assert BasePose().move_along_arc(100, 0) == BasePose(0, 100, 0)


def test_moving_forward_after_a_left_turn_decreases_x() -> None:
    assert numbers(BasePose(heading=90).move_along_arc(100, 0)) == approximately(
        BasePose(-100, 0, 90)
    )


def test_quarter_arc_to_the_left() -> None:
    """The arc ends one radius ahead and one radius to the left."""
    radius = 100 / (math.pi / 2)
    assert numbers(BasePose().move_along_arc(100, 90)) == approximately(
        BasePose(-radius, radius, 90)
    )


def test_full_circle_returns_to_its_start() -> None:
    assert numbers(BasePose(5, 6, 7).move_along_arc(1000, -360)) == approximately(
        BasePose(5, 6, -353)
    )


@given(MODEST, MODEST, st.integers(1, 20))
def test_short_arcs_add_up_to_one_long_arc(distance: float, turn: float, parts: int) -> None:
    place = BasePose(1, 2, 3)
    for _ in range(parts):
        place = place.move_along_arc(distance / parts, turn / parts)
    assert numbers(place) == approximately(BasePose(1, 2, 3).move_along_arc(distance, turn))


@given(MODEST, MODEST)
def test_reversed_arc_returns_to_its_start(distance: float, turn: float) -> None:
    assert numbers(
        BasePose().move_along_arc(distance, turn).move_along_arc(-distance, -turn)
    ) == approximately(BasePose())


@pytest.mark.parametrize(
    ("distance", "velocity", "reached"),
    [(40, 90, 40), (40, -90, -40), (-40, 90, -40), (-40, -90, 40)],
)
def test_straight_leg_covers_its_distance_and_stops(
    distance: float, velocity: float, reached: float
) -> None:
    drive = PlanarMotion(BasePose(), 0).continue_along(Leg.straight(distance, velocity), 10)
    assert drive.seconds == pytest.approx(40 / 90)
    assert drive.speed_at(10) == Speed(linear=math.copysign(90, reached))
    assert numbers(drive.pose_at(10 + drive.seconds / 2)) == approximately(
        BasePose(0, reached / 2, 0)
    )
    assert drive.pose_at(11) == BasePose(0, reached, 0)
    assert drive.speed_at(11) == REST


def test_very_short_leg_reaches_its_end() -> None:
    leg = Leg.spin(1e-300, 1e300)
    assert PlanarMotion(BasePose(), 0).continue_along(leg, 1).pose_at(1).heading == 1e-300


def test_new_speed_continues_from_the_current_pose() -> None:
    drive = (
        PlanarMotion(BasePose(), 0)
        .continue_at(Speed(linear=10), 0)
        .continue_at(Speed(angular=5), 3)
        .continue_at(REST, 5)
    )
    assert numbers(drive.pose_at(99)) == approximately(BasePose(0, 30, 10))
