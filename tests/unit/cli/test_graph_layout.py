"""Where boxes and lines go."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from cogwork.cli.graph_layout import Curve, Edge, GraphLayout, Point, arrange

WIDTH = 100.0

names = st.integers(0, 7).map(str)
lines = st.lists(st.tuples(names, names), max_size=25)
heights = st.fixed_dictionaries({str(n): st.sampled_from((40.0, 60.0)) for n in range(8)})


@given(heights, lines)
def test_boxes_keep_their_distance_and_stay_inside(
    heights: dict[str, float], lines: list[Edge]
) -> None:
    layout = arrange(heights, WIDTH, lines)
    assert layout.corners.keys() == heights.keys()
    for name, corner in layout.corners.items():
        assert corner.x >= 0
        assert corner.y >= -0.001
        assert corner.x + WIDTH <= layout.width
        assert corner.y + heights[name] <= layout.height + 0.001
    for one, other in combinations(heights, 2):
        assert distance(layout, heights, one, other) >= 15.999


def distance(layout: GraphLayout, heights: dict[str, float], one: str, other: str) -> float:
    (x1, y1), (x2, y2) = layout.corners[one], layout.corners[other]
    return max(x2 - x1 - WIDTH, x1 - x2 - WIDTH, y2 - y1 - heights[one], y1 - y2 - heights[other])


@given(heights, lines)
def test_every_line_leads_from_its_start_to_its_end(
    heights: dict[str, float], lines: list[Edge]
) -> None:
    layout = arrange(heights, WIDTH, lines)
    for start, end in lines:
        if start != end:
            assert way(layout, heights, start, end)[-1] in sides(layout, heights, end)


@given(heights, lines)
def test_there_are_no_other_lines(heights: dict[str, float], lines: list[Edge]) -> None:
    layout = arrange(heights, WIDTH, lines)
    wanted = {line for line in lines if line[0] != line[1]}
    assert layout.curves.keys() == {end for _, end in wanted}
    for end, curves in layout.curves.items():
        starts = {start for start, wanted_end in wanted if wanted_end == end}
        ons = {(curve.extend_to, curve.end.y) for curve in curves}
        first = [curve.start for curve in curves if tuple(curve.start) not in ons]
        assert len(first) == len(starts)


def sides(layout: GraphLayout, heights: dict[str, float], name: str) -> tuple[Point, Point]:
    x, y = layout.corners[name]
    middle = y + heights[name] / 2
    return rounded(Point(x, middle)), rounded(Point(x + WIDTH, middle))


def way(layout: GraphLayout, heights: dict[str, float], start: str, end: str) -> list[Point]:
    """The ends of the curves from one box to the other, in one direction."""
    left, right = sides(layout, heights, start)
    backward = layout.corners[start].x > layout.corners[end].x
    at = left if backward else right
    points: list[Point] = []
    while True:
        curve = next(curve for curve in layout.curves[end] if leaves(curve, at, backward))
        points.append(rounded(curve.end))
        if curve.extend_to is None:
            return points
        at = rounded(Point(curve.extend_to, curve.end.y))


def leaves(curve: Curve, at: Point, backward: bool) -> bool:
    return rounded(curve.start) == at and (curve.end.x < curve.start.x) == backward


def rounded(point: Point) -> Point:
    return Point(round(point.x, 3), round(point.y, 3))


@given(st.lists(st.tuples(names, names).map(lambda line: tuple(sorted(line))), max_size=25))
def test_without_cycles_every_line_runs_to_the_right(lines: list[Edge]) -> None:
    layout = arrange(dict.fromkeys(map(str, range(8)), 40.0), WIDTH, lines)
    assert all(curve.start.x < curve.end.x for curves in layout.curves.values() for curve in curves)


@given(heights, lines, st.randoms())
def test_the_order_they_come_in_does_not_matter(
    heights: dict[str, float], lines: list[Edge], chance: random.Random
) -> None:
    shuffled = {name: heights[name] for name in chance.sample(list(heights), len(heights))}
    again = arrange(shuffled, WIDTH, chance.sample(lines, len(lines)))
    assert again == arrange(heights, WIDTH, lines)


def test_a_chain_is_a_straight_line() -> None:
    chain = [str(number) for number in range(5)]
    layout = arrange(dict.fromkeys(chain, 40.0), WIDTH, pairwise(chain))
    assert {corner.y for corner in layout.corners.values()} == {0.0}
    assert [layout.corners[name].x for name in chain] == [0, 164, 328, 492, 656]


def test_lines_that_need_not_cross_do_not() -> None:
    layout = arrange(
        dict.fromkeys("abcdefg", 40.0),
        WIDTH,
        [("a", "g"), ("b", "f"), ("c", "e"), ("d", "e"), ("d", "f"), ("c", "g")],
    )
    curves = [curve for curves in layout.curves.values() for curve in curves]
    for one, other in combinations(curves, 2):
        assert (one.start.y - other.start.y) * (one.end.y - other.end.y) >= 0


def test_many_lines_to_one_or_from_one_do_not_make_a_tower() -> None:
    leaves = [f"{number:03}" for number in range(200)]
    for lines in ([(leaf, "hub") for leaf in leaves], [("hub", leaf) for leaf in leaves]):
        layout = arrange(dict.fromkeys([*leaves, "hub"], 40.0), WIDTH, lines)
        assert 0.25 < layout.width / layout.height < 2.5


def test_what_is_not_connected_is_packed_like_a_page() -> None:
    layout = arrange(dict.fromkeys(map(str, range(300)), 40.0), WIDTH, [])
    assert 1 < layout.width / layout.height < 2.2


def test_nothing() -> None:
    assert arrange({}, WIDTH, []) == GraphLayout(0, 0, {}, {})
