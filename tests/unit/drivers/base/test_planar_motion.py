from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.base.planar_motion import REST, BasePose, Leg, PlanarMotion, Speed

MODEST = st.floats(-1000, 1000)


def at(place: BasePose) -> object:
    return pytest.approx(numbers(place), abs=1e-6)


def numbers(place: BasePose) -> tuple[float, float, float]:
    return place.x, place.y, place.heading


def test_ahead_is_y() -> None:
    assert BasePose().move_along_arc(100, 0) == BasePose(0, 100, 0)


def test_turned_to_the_left_ahead_is_where_left_was() -> None:
    assert numbers(BasePose(heading=90).move_along_arc(100, 0)) == at(BasePose(-100, 0, 90))


def test_a_quarter_of_a_circle_to_the_left() -> None:
    """It ends one radius ahead and one to the left."""
    radius = 100 / (math.pi / 2)
    assert numbers(BasePose().move_along_arc(100, 90)) == at(BasePose(-radius, radius, 90))


def test_a_whole_circle_ends_where_it_began() -> None:
    assert numbers(BasePose(5, 6, 7).move_along_arc(1000, -360)) == at(BasePose(5, 6, -353))


@given(MODEST, MODEST, st.integers(1, 20))
def test_many_short_arcs_are_one_long(distance: float, turn: float, parts: int) -> None:
    place = BasePose(1, 2, 3)
    for _ in range(parts):
        place = place.move_along_arc(distance / parts, turn / parts)
    assert numbers(place) == at(BasePose(1, 2, 3).move_along_arc(distance, turn))


@given(MODEST, MODEST)
def test_back_along_the_arc_is_where_it_began(distance: float, turn: float) -> None:
    assert numbers(
        BasePose().move_along_arc(distance, turn).move_along_arc(-distance, -turn)
    ) == at(BasePose())


@pytest.mark.parametrize(
    ("distance", "velocity", "reached"),
    [(40, 90, 40), (40, -90, -40), (-40, 90, -40), (-40, -90, 40)],
)
def test_a_straight_leg(distance: float, velocity: float, reached: float) -> None:
    drive = PlanarMotion(BasePose(), 0).continue_along(Leg.straight(distance, velocity), 10)
    assert drive.seconds == pytest.approx(40 / 90)
    assert drive.speed_at(10) == Speed(linear=math.copysign(90, reached))
    assert numbers(drive.pose_at(10 + drive.seconds / 2)) == at(BasePose(0, reached / 2, 0))
    assert drive.pose_at(11) == BasePose(0, reached, 0)
    assert drive.speed_at(11) == REST


def test_a_leg_that_takes_next_to_no_time() -> None:
    leg = Leg.spin(1e-300, 1e300)
    assert PlanarMotion(BasePose(), 0).continue_along(leg, 1).pose_at(1).heading == 1e-300


def test_a_new_speed_goes_on_from_where_it_is() -> None:
    drive = (
        PlanarMotion(BasePose(), 0)
        .continue_at(Speed(linear=10), 0)
        .continue_at(Speed(angular=5), 3)
        .continue_at(REST, 5)
    )
    assert numbers(drive.pose_at(99)) == at(BasePose(0, 30, 10))
