from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.spatial.geodesy import GeoCoordinate

DEGREE = 111_195.08
"""Meters of one degree along a great circle."""


@pytest.mark.parametrize(
    ("start", "bearing", "degrees", "end"),
    [
        (GeoCoordinate(0, 0), 0, 1, GeoCoordinate(1, 0)),
        (GeoCoordinate(0, 0), 90, 1, GeoCoordinate(0, 1)),
        (GeoCoordinate(0, 0), 180, 1, GeoCoordinate(-1, 0)),
        (GeoCoordinate(0, 0), 270, 1, GeoCoordinate(0, -1)),
        (GeoCoordinate(60, 10), 0, 0, GeoCoordinate(60, 10)),
        (GeoCoordinate(0, 179.5), 90, 1, GeoCoordinate(0, -179.5)),
        (GeoCoordinate(89, 20), 0, 2, GeoCoordinate(89, -160)),
    ],
)
def test_destination_along_a_bearing(
    start: GeoCoordinate, bearing: float, degrees: float, end: GeoCoordinate
) -> None:
    found = start.destination(bearing, degrees * DEGREE)
    assert (found.latitude, found.longitude) == pytest.approx(
        (end.latitude, end.longitude), abs=1e-6
    )


def test_meters_to_the_east_are_more_degrees_in_the_north() -> None:
    assert GeoCoordinate(60, 0).destination(90, 100).longitude == pytest.approx(
        2 * 100 / DEGREE, rel=1e-3
    )


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 360), st.floats(0, 1e7))
def test_destination_is_a_valid_coordinate(
    latitude: float, longitude: float, bearing: float, meters: float
) -> None:
    found = GeoCoordinate(latitude, longitude).destination(bearing, meters)
    assert -90 <= found.latitude <= 90
    assert -180 <= found.longitude <= 180


@pytest.mark.parametrize(
    ("here", "there", "meters"),
    [
        (GeoCoordinate(0, 0), GeoCoordinate(0, 1), (DEGREE, 0)),
        (GeoCoordinate(0, 0), GeoCoordinate(1, 0), (0, DEGREE)),
        (GeoCoordinate(60, 10), GeoCoordinate(60, 11), (DEGREE / 2, 0)),
        (GeoCoordinate(0, 179.5), GeoCoordinate(0, -179.5), (DEGREE, 0)),
    ],
)
def test_offset_between_coordinates(
    here: GeoCoordinate, there: GeoCoordinate, meters: tuple[float, float]
) -> None:
    assert here.offset_to(there) == pytest.approx(meters, abs=1)


METERS = st.floats(-10_000, 10_000)


@given(st.floats(-80, 80), st.floats(-180, 180), METERS, METERS)
def test_offset_survives_a_round_trip(
    latitude: float, longitude: float, east: float, north: float
) -> None:
    here = GeoCoordinate(latitude, longitude)
    assert here.offset_to(here.offset_by(east, north)) == pytest.approx((east, north), abs=1e-3)
