from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.base.drive import REST, Drive, Leg, Place, Speed

MODEST = st.floats(-1000, 1000)


def at(place: Place) -> object:
    return pytest.approx(numbers(place), abs=1e-6)


def numbers(place: Place) -> tuple[float, float, float]:
    return place.x, place.y, place.heading


def test_ahead_is_y() -> None:
    assert Place().along(100, 0) == Place(0, 100, 0)


def test_turned_to_the_left_ahead_is_where_left_was() -> None:
    assert numbers(Place(heading=90).along(100, 0)) == at(Place(-100, 0, 90))


def test_a_quarter_of_a_circle_to_the_left() -> None:
    """It ends one radius ahead and one to the left."""
    radius = 100 / (math.pi / 2)
    assert numbers(Place().along(100, 90)) == at(Place(-radius, radius, 90))


def test_a_whole_circle_ends_where_it_began() -> None:
    assert numbers(Place(5, 6, 7).along(1000, -360)) == at(Place(5, 6, -353))


@given(MODEST, MODEST, st.integers(1, 20))
def test_many_short_arcs_are_one_long(distance: float, turn: float, parts: int) -> None:
    place = Place(1, 2, 3)
    for _ in range(parts):
        place = place.along(distance / parts, turn / parts)
    assert numbers(place) == at(Place(1, 2, 3).along(distance, turn))


@given(MODEST, MODEST)
def test_back_along_the_arc_is_where_it_began(distance: float, turn: float) -> None:
    assert numbers(Place().along(distance, turn).along(-distance, -turn)) == at(Place())


@pytest.mark.parametrize(
    ("distance", "velocity", "reached"),
    [(40, 90, 40), (40, -90, -40), (-40, 90, -40), (-40, -90, 40)],
)
def test_a_straight_leg(distance: float, velocity: float, reached: float) -> None:
    drive = Drive(Place(), 0).over(Leg.straight(distance, velocity), 10)
    assert drive.seconds == pytest.approx(40 / 90)
    assert drive.velocity(10) == Speed(linear=math.copysign(90, reached))
    assert numbers(drive.place(10 + drive.seconds / 2)) == at(Place(0, reached / 2, 0))
    assert drive.place(11) == Place(0, reached, 0)
    assert drive.velocity(11) == REST


def test_a_leg_that_takes_next_to_no_time() -> None:
    leg = Leg.spin(1e-300, 1e300)
    assert Drive(Place(), 0).over(leg, 1).place(1).heading == 1e-300


def test_a_new_speed_goes_on_from_where_it_is() -> None:
    drive = Drive(Place(), 0).at(Speed(linear=10), 0).at(Speed(angular=5), 3).at(REST, 5)
    assert numbers(drive.place(99)) == at(Place(0, 30, 10))
