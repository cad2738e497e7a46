from __future__ import annotations

import itertools
import random

import pytest

from cogwork.drivers.navigation.planned_path import path_length
from cogwork.drivers.navigation.planning import (
    Keepout,
    find_blocking_zone,
    plan_path,
    plan_through,
)
from cogwork.drivers.navigation.polygon import Polygon
from cogwork.drivers.navigation.search_budget import NoPath, SearchBudget


def keepout(name: str, x: float, y: float, width: float, height: float) -> Keepout:
    return Keepout.inflate(name, Polygon.from_box((x, y), (width, height), 0.0), 0.0)


def test_path_without_obstacles_is_straight() -> None:
    aside = keepout("aside", 5, 5, 2, 2)
    assert plan_path((0, 0), (10, 0), [aside], SearchBudget()) == [(0, 0), (10, 0)]


def test_path_avoids_an_obstacle() -> None:
    wall = keepout("wall", 5, 1, 1, 4)
    path = plan_path((0, 0), (10, 0), [wall], SearchBudget())
    assert find_blocking_zone(path, [wall], SearchBudget()) is None
    # It passes below, which is shorter.
    assert min(y for _, y in path) == pytest.approx(-1.01)
    assert path_length(path) == pytest.approx(10.2, abs=0.2)


def test_path_avoids_zones_met_on_the_detour() -> None:
    zones = [keepout("wall", 5, 0, 1, 4), keepout("low", 5, -4, 3, 4.5), keepout("far", 5, 9, 3, 3)]
    path = plan_path((0, 0), (10, 0), zones, SearchBudget())
    assert find_blocking_zone(path, zones, SearchBudget()) is None
    assert max(y for _, y in path) == pytest.approx(2.01)


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [((5, 0), (9, 9), "the start is in zone"), ((0, 0), (5, 0), "the destination is in zone")],
)
def test_start_or_destination_in_a_zone_is_refused(
    start: tuple[float, float], end: tuple[float, float], words: str
) -> None:
    with pytest.raises(NoPath, match=words):
        plan_path(start, end, [keepout("pit", 5, 0, 2, 2)], SearchBudget())


def test_closed_yard_has_no_path() -> None:
    yard = [
        keepout("north", 0, 5, 12, 1),
        keepout("south", 0, -5, 12, 1),
        keepout("east", 5, 0, 1, 12),
        keepout("west", -5, 0, 1, 12),
    ]
    with pytest.raises(NoPath, match="no path leads around the zones"):
        plan_path((0, 0), (20, 0), yard, SearchBudget())


def test_too_complex_search_is_refused() -> None:
    teeth = [keepout(f"tooth {x}", x, 0, 0.1, 10) for x in range(1, 100)]
    with pytest.raises(NoPath, match="too many"):
        plan_path((0, 0), (100, 0), teeth, SearchBudget())


def test_too_many_legs_are_refused() -> None:
    wall = keepout("wall", 5, 0, 1, 4)
    legs: list[tuple[float, float]] = [(0, 0), (10, 0)]
    assert len(plan_through(legs, [wall], SearchBudget(1000))) == 1
    with pytest.raises(NoPath, match="too many stops and zones"):
        plan_through(legs * 100, [wall], SearchBudget(1000))


def test_cancelled_search_ends() -> None:
    effort = SearchBudget()
    effort.cancel()
    with pytest.raises(NoPath):
        plan_path((0, 0), (10, 0), [keepout("aside", 5, 5, 2, 2)], effort)


@pytest.mark.parametrize("seed", range(20))
def test_random_zones_are_avoided(seed: int) -> None:
    chance = random.Random(seed)
    zones = [
        keepout(str(number), chance.uniform(2, 18), chance.uniform(-8, 8), 2, chance.uniform(1, 4))
        for number in range(12)
    ]
    path = plan_path((0, 0), (20, 0), zones, SearchBudget())
    assert (path[0], path[-1]) == ((0, 0), (20, 0))
    assert find_blocking_zone(path, zones, SearchBudget()) is None
    assert all(one != other for one, other in itertools.pairwise(path))


PIT = Keepout.inflate("pit", Polygon.from_box((5, 0), (2, 2), 0.0), 0.5, 0.3)
"""It extends to 1.5 meters from its center, and its margin to 1.8 meters."""


def test_path_leaves_a_margin_first() -> None:
    path = plan_path((3.4, 0), (10, 0), [PIT], SearchBudget())
    assert path[:2] == [(3.4, 0), pytest.approx((3.19, 0))]
    assert find_blocking_zone(path[1:], [PIT], SearchBudget()) is None
    assert find_blocking_zone(path, [PIT], SearchBudget()) is None


def test_path_from_a_margin_does_not_cross_the_zone() -> None:
    assert find_blocking_zone([(3.4, 0), (10, 0)], [PIT], SearchBudget()) is PIT
    assert find_blocking_zone([(3, 0), (3.4, 0), (3, 0)], [PIT], SearchBudget()) is PIT


def test_start_beyond_the_margin_is_refused() -> None:
    with pytest.raises(NoPath, match='the start is in zone "pit"'):
        plan_path((3.6, 0), (10, 0), [PIT], SearchBudget())


def test_margin_without_an_exit_is_refused() -> None:
    other = Keepout.inflate("other", Polygon.from_box((1.5, 0), (2, 20), 0.0), 0.5, 0.3)
    with pytest.raises(NoPath, match="no path leads out of the margin"):
        plan_path((3.4, 0), (10, 0), [other, PIT], SearchBudget())


def test_destination_in_a_margin_is_refused() -> None:
    with pytest.raises(NoPath, match='the destination is in zone "pit"'):
        plan_path((0, 0), (3.4, 0), [PIT], SearchBudget())
