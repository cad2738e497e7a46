"""Path planning around keepout zones: straight if possible, else along their corners."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.navigation.coordinates import MapPoint
from cogwork.drivers.navigation.polygon import Polygon
from cogwork.drivers.navigation.search_budget import NoPath, SearchBudget

MAX_DETOUR_CORNERS = 160
"""Maximum number of corners, of all blocking zones together, to plan a path around. Visibility is
checked between all pairs of corners."""

_CORNER_CLEARANCE = 0.01
"""Meters between a corner and the path around it."""


@dataclass(frozen=True, slots=True)
class Keepout:
    name: str
    polygon: Polygon
    """The zone, inflated by the radius of the machine and the margin. Paths stay outside."""
    core: Polygon
    """The zone, inflated by the radius of the machine. The machine itself stays outside; it may be
    in the margin, because it does not follow its path exactly."""

    @classmethod
    def inflate(cls, name: str, zone: Polygon, radius: float, margin: float = 0.0) -> Keepout:
        return cls(name, zone.inflate(radius + margin), zone.inflate(radius))


def plan_through(
    stops: Sequence[MapPoint], keepouts: Sequence[Keepout], budget: SearchBudget
) -> list[list[MapPoint]]:
    """Plan from the first to the last stop; return one list of points per stop after the first."""
    return [plan_path(start, end, keepouts, budget)[1:] for start, end in itertools.pairwise(stops)]


def plan_path(
    start: MapPoint, end: MapPoint, keepouts: Sequence[Keepout], budget: SearchBudget
) -> list[MapPoint]:
    for each in keepouts:
        if each.polygon.contains(end):
            raise NoPath(f'the destination is in zone "{each.name}" or too close to it')
    outside = _leave_margins(start, keepouts, budget)
    path = [outside, end]
    avoided: list[Keepout] = []
    while blocking := [
        each for each in keepouts if each not in avoided and _blocks_path(each, path, budget)
    ]:
        avoided += blocking
        path = _plan_around(outside, end, avoided, budget)
    return path if outside == start else [start, *path]


def find_blocking_zone(
    path: Sequence[MapPoint], keepouts: Sequence[Keepout], budget: SearchBudget
) -> Keepout | None:
    """Return a zone that blocks the path. The path may begin in the margins of zones."""
    leaving = True
    for start, end in itertools.pairwise(path):
        leaving = leaving and any(each.polygon.contains(start) for each in keepouts)
        for each in keepouts:
            budget.spend(1)
            if (each.core if leaving else each.polygon).intersects(start, end):
                return each
    return None


def _leave_margins(start: MapPoint, keepouts: Sequence[Keepout], budget: SearchBudget) -> MapPoint:
    """Return the start, or the nearest point outside of all margins if it is in a margin."""
    outside = start
    for each in keepouts:
        if each.core.contains(outside):
            raise NoPath(f'the start is in zone "{each.name}" or too close to it')
        if each.polygon.contains(outside):
            outside = each.polygon.inflate(_CORNER_CLEARANCE).nearest_point(outside)
    for each in keepouts:
        budget.spend(1)
        if each.polygon.contains(outside) or each.core.intersects(start, outside):
            raise NoPath(f'no path leads out of the margin of zone "{each.name}"')
    return outside


def _blocks_path(keepout: Keepout, path: Sequence[MapPoint], budget: SearchBudget) -> bool:
    return any(
        _blocks_segment(keepout, start, end, budget) for start, end in itertools.pairwise(path)
    )


def _blocks_segment(keepout: Keepout, start: MapPoint, end: MapPoint, budget: SearchBudget) -> bool:
    budget.spend(1)
    return keepout.polygon.intersects(start, end)


def _plan_around(
    start: MapPoint, end: MapPoint, keepouts: Sequence[Keepout], budget: SearchBudget
) -> list[MapPoint]:
    """Return the shortest path along the corners of the zones."""
    corners = [
        point
        for keepout in keepouts
        for point in keepout.polygon.inflate(_CORNER_CLEARANCE).corners
        if not any(each.polygon.contains(point) for each in keepouts)
    ]
    if len(corners) > MAX_DETOUR_CORNERS:
        raise NoPath(f"{len(keepouts)} zones block the path, which is too many to plan around")
    return _a_star([start, end, *corners], keepouts, budget)


def _a_star(
    points: Sequence[MapPoint], keepouts: Sequence[Keepout], budget: SearchBudget
) -> list[MapPoint]:
    """Return the shortest path from the first to the second point, by A* on a visibility graph."""
    start, end = 0, 1
    best_cost = {start: 0.0}
    came_from: dict[int, int] = {}
    open_set = [(math.dist(points[start], points[end]), start)]
    closed_set: set[int] = set()
    while open_set:
        _, current = heapq.heappop(open_set)
        if current == end:
            return _reconstruct_path(points, came_from)
        if current in closed_set:
            continue
        closed_set.add(current)
        for neighbor, point in enumerate(points):
            cost = best_cost[current] + math.dist(points[current], point)
            if neighbor in closed_set or cost >= best_cost.get(neighbor, math.inf):
                continue
            if not any(_blocks_segment(each, points[current], point, budget) for each in keepouts):
                best_cost[neighbor], came_from[neighbor] = cost, current
                heapq.heappush(open_set, (cost + math.dist(point, points[end]), neighbor))
    names = ", ".join(f'"{each.name}"' for each in keepouts[:10])
    raise NoPath(f"no path leads around the zones {names}")


def _reconstruct_path(points: Sequence[MapPoint], came_from: dict[int, int]) -> list[MapPoint]:
    path = [1]
    while path[-1] != 0:
        path.append(came_from[path[-1]])
    return [points[each] for each in reversed(path)]
