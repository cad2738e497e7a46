"""Ways that keep out of what is to be kept out of: straight where that is clear, else around."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.navigation.chart import Spot
from cogwork.drivers.navigation.effort import Effort, NoWay
from cogwork.drivers.navigation.outline import Outline

MOST_CORNERS = 160
"""Of the zones to go around on one way: each is looked at from each."""

_APART = 0.01
"""Metres from a corner at which a way goes around it."""


@dataclass(frozen=True, slots=True)
class Keepout:
    name: str
    outline: Outline
    """With the room that the machine takes up on its side of it."""


def way_through(
    stops: Sequence[Spot], keepouts: Sequence[Keepout], effort: Effort
) -> list[list[Spot]]:
    """From the first to the last. One list for each stop after the first, which ends there."""
    return [way(start, end, keepouts, effort)[1:] for start, end in itertools.pairwise(stops)]


def way(start: Spot, end: Spot, keepouts: Sequence[Keepout], effort: Effort) -> list[Spot]:
    for each in keepouts:
        for spot, whose in ((start, "it starts"), (end, "the destination is")):
            if each.outline.contains(spot):
                raise NoWay(f'{whose} in zone "{each.name}", or too close to it')
    path = [start, end]
    minded: list[Keepout] = []
    while blocking := [
        each for each in keepouts if each not in minded and _blocks(each, path, effort)
    ]:
        minded += blocking
        path = _around(start, end, minded, effort)
    return path


def first_block(
    path: Sequence[Spot], keepouts: Sequence[Keepout], effort: Effort
) -> Keepout | None:
    return next((each for each in keepouts if _blocks(each, path, effort)), None)


def length(path: Sequence[Spot]) -> float:
    return sum(math.dist(start, end) for start, end in itertools.pairwise(path))


def _blocks(keepout: Keepout, path: Sequence[Spot], effort: Effort) -> bool:
    return any(_is_between(keepout, start, end, effort) for start, end in itertools.pairwise(path))


def _is_between(keepout: Keepout, start: Spot, end: Spot, effort: Effort) -> bool:
    effort.spend(1)
    return keepout.outline.blocks(start, end)


def _around(start: Spot, end: Spot, keepouts: Sequence[Keepout], effort: Effort) -> list[Spot]:
    """The shortest way by the corners of the zones."""
    corners = [
        spot
        for keepout in keepouts
        for spot in keepout.outline.grown(_APART).corners
        if not any(each.outline.contains(spot) for each in keepouts)
    ]
    if len(corners) > MOST_CORNERS:
        raise NoWay(f"{len(keepouts)} zones are in the way: too many to find a way around them")
    return _shortest([start, end, *corners], keepouts, effort)


def _shortest(spots: Sequence[Spot], keepouts: Sequence[Keepout], effort: Effort) -> list[Spot]:
    """From the first to the second. The one that promises most is tried first."""
    start, end = 0, 1
    best = {start: 0.0}
    before: dict[int, int] = {}
    waiting = [(math.dist(spots[start], spots[end]), start)]
    done: set[int] = set()
    while waiting:
        _, here = heapq.heappop(waiting)
        if here == end:
            return _traced(spots, before)
        if here in done:
            continue
        done.add(here)
        for there, spot in enumerate(spots):
            gone = best[here] + math.dist(spots[here], spot)
            if there in done or gone >= best.get(there, math.inf):
                continue
            if not any(_is_between(each, spots[here], spot, effort) for each in keepouts):
                best[there], before[there] = gone, here
                heapq.heappush(waiting, (gone + math.dist(spot, spots[end]), there))
    names = ", ".join(f'"{each.name}"' for each in keepouts[:10])
    raise NoWay(f"no way leads past the zones {names}")


def _traced(spots: Sequence[Spot], before: dict[int, int]) -> list[Spot]:
    path = [1]
    while path[-1] != 0:
        path.append(before[path[-1]])
    return [spots[each] for each in reversed(path)]
