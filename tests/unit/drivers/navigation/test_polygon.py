from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.navigation.polygon import Polygon, interpolate

SQUARE = Polygon.from_box((0.0, 0.0), (2.0, 2.0), 0.0)
NOTCHED = Polygon.from_corners([(0, 0), (4, 0), (4, 4), (2, 1), (0, 4)])
SPOTS = st.tuples(st.floats(-5, 5), st.floats(-5, 5))


@pytest.mark.parametrize(
    ("spot", "inside"),
    [((0.9, 0.9), True), ((1.1, 0), False), ((0, -1.1), False), ((-0.5, 0.2), True)],
)
def test_contains_detects_inner_points(spot: tuple[float, float], inside: bool) -> None:
    assert SQUARE.contains(spot) is inside


def test_notch_of_a_concave_polygon_is_outside() -> None:
    assert not NOTCHED.contains((2, 2))
    assert NOTCHED.contains((0.5, 2))
    assert NOTCHED.scanline_crossings(2) == pytest.approx([0, 4 / 3, 8 / 3, 4])


def test_corners_may_be_clockwise_or_counterclockwise() -> None:
    corners = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    for given_corners in (corners, corners[::-1]):
        assert Polygon.from_corners(given_corners).area == pytest.approx(0.5)


def test_box_can_be_rotated() -> None:
    diamond = Polygon.from_box((1.0, 0.0), (2.0, 2.0), 45)
    assert diamond.contains((1 + 1.4, 0))
    assert not diamond.contains((1.9, 0.9))


@pytest.mark.parametrize(
    ("start", "end", "blocked"),
    [
        ((-2, 0), (2, 0), True),
        ((-2, -2), (2, 2), True),
        ((-2, 1.5), (2, 1.5), False),
        ((0, 0), (0.1, 0.1), True),
        ((0.5, 0), (3, 0), True),
        ((2, 3), (3, 2), False),
    ],
)
def test_intersects_detects_segments_through_the_polygon(
    start: tuple[float, float], end: tuple[float, float], blocked: bool
) -> None:
    assert SQUARE.intersects(start, end) is blocked


def test_intersections_are_shares_of_the_segment() -> None:
    assert SQUARE.intersections((-2, 0), (2, 0)) == pytest.approx([0.25, 0.75])


@given(SPOTS)
def test_circle_polygon_contains_the_whole_circle(center: tuple[float, float]) -> None:
    circle = Polygon.from_circle(center, 1.5)
    for degrees in range(0, 360, 7):
        angle = math.radians(degrees)
        edge = (center[0] + 1.499 * math.cos(angle), center[1] + 1.499 * math.sin(angle))
        assert circle.contains(edge)


@given(SPOTS, SPOTS)
def test_segment_with_an_inner_point_intersects(
    start: tuple[float, float], end: tuple[float, float]
) -> None:
    inside = NOTCHED.inflate(-1e-6)
    if any(inside.contains(interpolate(start, end, share / 20)) for share in range(21)):
        assert NOTCHED.intersects(start, end)


@pytest.mark.parametrize("outline", [SQUARE, Polygon.from_circle((3.0, 1.0), 2.0)])
def test_inflated_polygon_keeps_the_distance(outline: Polygon) -> None:
    grown = outline.inflate(0.5)
    for start, end in grown.edges:
        for share in (0, 0.3, 0.5, 0.9):
            spot = interpolate(start, end, share)
            assert min(_distance(spot, edge) for edge in outline.edges) >= 0.499


def _distance(
    spot: tuple[float, float], edge: tuple[tuple[float, float], tuple[float, float]]
) -> float:
    return min(math.dist(spot, interpolate(*edge, share / 200)) for share in range(201))
