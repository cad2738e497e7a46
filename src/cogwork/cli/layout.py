"""Where the boxes of a drawing go, and which way the lines between them take.

Lines run from left to right. Boxes are put into layers by the longest path, ordered by barycentre
so that few lines cross, and moved up and down until the lines are as straight as they can be. What
is not connected is laid out on its own and packed side by side.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain, pairwise
from typing import NamedTuple

Line = tuple[str, str]

_LAYER_GAP = 64.0
_BOX_GAP = 16.0
_PART_GAP = 40.0
_SHAPE = 1.6
"""Width to height that packing aims at."""
_SMALL_LAYER = 10
"""So many boxes on top of each other are never too many."""
_ROUNDS = 12
_PATIENCE = 30_000
"""How many stops are worth moving in all: a huge drawing gets fewer rounds, not a longer wait."""


class Point(NamedTuple):
    x: float
    y: float


class Curve(NamedTuple):
    """It leaves `start` and reaches `end` level."""

    start: Point
    end: Point
    on: float | None
    """How far it goes straight on, to where others begin; None where it has reached its box."""


@dataclass(frozen=True, slots=True)
class Layout:
    width: float
    height: float
    corners: Mapping[str, Point]
    """The upper left one of each box."""
    wires: Mapping[str, tuple[Curve, ...]]
    """What leads to each box. Lines run together on their last stretch, which is there once."""


def arrange(heights: Mapping[str, float], width: float, lines: Iterable[Line]) -> Layout:
    """Boxes of one width. A line from a box to itself is left out: it has no way to take."""
    between = sorted({(start, end) for start, end in lines if start != end})
    parts = [_arranged(names, width, heights, inner) for names, inner in _parts(heights, between)]
    parts.sort(key=lambda part: (-part.height, -part.width, min(part.corners)))
    return _packed(parts)


def _parts(names: Iterable[str], lines: Sequence[Line]) -> Iterator[tuple[list[str], list[Line]]]:
    """What hangs together, each with the lines in it."""
    neighbours = defaultdict(list)
    for start, end in lines:
        neighbours[start].append(end)
        neighbours[end].append(start)
    seen: set[str] = set()
    for name in sorted(names):
        if name in seen:
            continue
        part, todo = set(), [name]
        while todo:
            found = todo.pop()
            if found not in part:
                part.add(found)
                todo += neighbours[found]
        seen |= part
        yield sorted(part), [line for line in lines if line[0] in part]


class _Stop(NamedTuple):
    """A box in its own layer; in a layer before that, where the lines to the box pass."""

    box: str
    layer: int


_Link = tuple[_Stop, _Stop]
"""Between stops of neighbouring layers."""


@dataclass(frozen=True, slots=True)
class _Columns:
    """The stops, layer by layer from left to right and each from top to bottom."""

    stops: list[list[_Stop]]
    before: Mapping[_Stop, Sequence[_Stop]]
    """What a stop is connected with in the layer on its left."""
    after: Mapping[_Stop, Sequence[_Stop]]

    @property
    def rounds(self) -> int:
        return max(1, min(_ROUNDS, _PATIENCE // sum(map(len, self.stops))))


def _arranged(
    names: Sequence[str], width: float, heights: Mapping[str, float], lines: Sequence[Line]
) -> Layout:
    backward = _backward(names, lines)
    layers = _layers(names, {line[::-1] if line in backward else line for line in lines})
    forward = _links(layers, (line for line in lines if line not in backward))
    turned = {line: _links(layers, [line[::-1]])[line[0]] for line in sorted(backward)}
    columns = _columns(layers, {*chain(*forward.values(), *turned.values())})
    _reduce_crossings(columns)
    tall = {
        stop: heights[stop.box] if layers[stop.box] == stop.layer else 0.0
        for stop in chain(*columns.stops)
    }
    grid = _Grid(width, tall, _middles(columns, tall))

    wires = {end: [grid.rightward(*link) for link in found] for end, found in forward.items()}
    for (_, end), found in turned.items():
        wires.setdefault(end, []).extend(grid.leftward(*link) for link in found)
    return Layout(
        grid.right(len(columns.stops) - 1),
        max(middle + tall[stop] / 2 for stop, middle in grid.middles.items()),
        {name: grid.corner(_Stop(name, layer)) for name, layer in layers.items()},
        {end: tuple(dict.fromkeys(curves)) for end, curves in wires.items()},
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """Where stops are, on the drawing."""

    width: float
    tall: Mapping[_Stop, float]
    """Nothing, where lines only pass."""
    middles: Mapping[_Stop, float]

    def left(self, layer: int) -> float:
        return layer * (self.width + _LAYER_GAP)

    def right(self, layer: int) -> float:
        return self.left(layer) + self.width

    def corner(self, box: _Stop) -> Point:
        return Point(self.left(box.layer), self.middles[box] - self.tall[box] / 2)

    def rightward(self, here: _Stop, there: _Stop) -> Curve:
        start = Point(self.right(here.layer), self.middles[here])
        end = Point(self.left(there.layer), self.middles[there])
        return Curve(start, end, None if self.tall[there] else self.right(there.layer))

    def leftward(self, here: _Stop, there: _Stop) -> Curve:
        start, end, _ = self.rightward(here, there)
        return Curve(end, start, None if self.tall[here] else self.left(here.layer))


def _backward(names: Sequence[str], lines: Sequence[Line]) -> set[Line]:
    """The lines that close a cycle: without them, all the others run from left to right."""
    ends = defaultdict(list)
    for start, end in lines:
        ends[start].append(end)
    pointed_at = {end for _, end in lines}
    found: set[Line] = set()
    done: set[str] = set()
    for first in sorted(names, key=lambda name: (name in pointed_at, name)):
        if first in done:
            continue
        path = {first: iter(ends[first])}
        while path:
            name, rest = next(reversed(path.items()))
            for end in rest:
                if end in path:
                    found.add((name, end))
                elif end not in done:
                    path[end] = iter(ends[end])
                    break
            else:
                done.add(name)
                del path[name]
    return found


def _layers(names: Sequence[str], lines: Iterable[Line]) -> dict[str, int]:
    """The longest way to each; then those with more lines to the right move up to their ends."""
    starts: dict[str, list[str]] = {name: [] for name in names}
    ends: dict[str, list[str]] = {name: [] for name in names}
    for start, end in sorted(lines):
        starts[end].append(start)
        ends[start].append(end)
    order = list(TopologicalSorter(starts).static_order())
    layers: dict[str, int] = {}
    for name in order:
        layers[name] = max((layers[start] + 1 for start in starts[name]), default=0)
    for name in reversed(order):
        if len(ends[name]) > len(starts[name]):
            layers[name] = min(layers[end] for end in ends[name]) - 1
    most = max(_SMALL_LAYER, math.isqrt(4 * len(names)))
    _spread(layers, [name for name in names if not starts[name]], most, -1)
    _spread(layers, [name for name in names if not ends[name]], most, +1)
    first = min(layers.values())
    return {name: layer - first for name, layer in layers.items()}


def _spread(layers: dict[str, int], free: Iterable[str], most: int, step: int) -> None:
    """Moves what has no lines on one side further to that side, where a layer has too many."""
    full = Counter(layers.values())
    for name in sorted(free, key=lambda name: (-step * layers[name], name)):
        while full[layers[name]] > most:
            full[layers[name]] -= 1
            layers[name] += step
            full[layers[name]] += 1


def _links(layers: Mapping[str, int], lines: Iterable[Line]) -> dict[str, list[_Link]]:
    """By the box they lead to: one from each start, and one from layer to layer for them all."""
    starts = defaultdict(list)
    for start, end in sorted(lines):
        starts[end].append(_Stop(start, layers[start]))
    return {
        end: [*_joining(end, stops), *_shared(end, stops, layers[end])]
        for end, stops in starts.items()
    }


def _joining(end: str, starts: Iterable[_Stop]) -> Iterator[_Link]:
    for start in starts:
        yield start, _Stop(end, start.layer + 1)


def _shared(end: str, starts: Iterable[_Stop], layer: int) -> Iterator[_Link]:
    first = min(start.layer for start in starts) + 1
    return pairwise(_Stop(end, passed) for passed in range(first, layer + 1))


def _columns(layers: Mapping[str, int], links: Iterable[_Link]) -> _Columns:
    before, after = defaultdict(list), defaultdict(list)
    for left, right in sorted(links):
        before[right].append(left)
        after[left].append(right)
    boxes: dict[int, list[_Stop]] = defaultdict(list)
    passed: dict[int, list[_Stop]] = defaultdict(list)
    for name, layer in sorted(layers.items()):
        boxes[layer].append(_Stop(name, layer))
    for stop in sorted(before):
        if layers[stop.box] != stop.layer:
            passed[stop.layer].append(stop)
    stops = [_around(boxes[layer], passed[layer]) for layer in range(max(boxes) + 1)]
    return _Columns(stops, before, after)


def _around(boxes: list[_Stop], passed: list[_Stop]) -> list[_Stop]:
    """Lines pass in the middle: those that join them from above and below have it shortest."""
    half = len(boxes) // 2
    return boxes[:half] + passed + boxes[half:]


def _reduce_crossings(columns: _Columns) -> None:
    best, fewest = [list(column) for column in columns.stops], _crossings(columns)
    for round_ in range(columns.rounds):
        if fewest == 0:
            break
        # Whether ties stay as they are or turn round opens different ways out of a tangle.
        _sweep(columns, rightward=round_ % 2 == 0, turn_ties=round_ % 4 >= 2)
        if (crossings := _crossings(columns)) < fewest:
            best, fewest = [list(column) for column in columns.stops], crossings
    columns.stops[:] = best


def _sweep(columns: _Columns, rightward: bool, turn_ties: bool) -> None:
    """Each layer ordered by where its neighbours are, in the layer that was ordered before it."""
    neighbours = columns.before if rightward else columns.after
    ranks: dict[_Stop, float] = {}

    def barycentre(stop: _Stop) -> float:
        near = neighbours.get(stop)
        return sum(ranks[other] for other in near) / len(near) if near else ranks[stop]

    for column in columns.stops if rightward else reversed(columns.stops):
        ranks |= _ranks(column)
        if turn_ties:
            column.reverse()
        column.sort(key=barycentre)
        ranks |= _ranks(column)


def _ranks(column: Sequence[_Stop]) -> dict[_Stop, float]:
    """From 0 to 1, so that layers of different lengths compare."""
    return {stop: (rank + 0.5) / len(column) for rank, stop in enumerate(column)}


def _crossings(columns: _Columns) -> int:
    return sum(
        _crossings_between(left, right, columns.after) for left, right in pairwise(columns.stops)
    )


def _crossings_between(
    left: Sequence[_Stop], right: Sequence[_Stop], after: Mapping[_Stop, Sequence[_Stop]]
) -> int:
    ranks = {stop: rank for rank, stop in enumerate(right)}
    ended: list[int] = []
    crossings = 0
    for stop in left:
        ends = sorted(ranks[other] for other in after.get(stop, ()))
        crossings += sum(len(ended) - bisect_right(ended, end) for end in ends)
        for end in ends:
            insort(ended, end)
    return crossings


_Pulls = Mapping[_Stop, Sequence[tuple[float, _Stop]]]
"""By what each stop is pulled up or down, and how strongly."""


def _middles(columns: _Columns, tall: Mapping[_Stop, float]) -> dict[_Stop, float]:
    """How far down each stop is, from the top of the highest."""
    offsets: dict[_Stop, float] = {}
    for column in columns.stops:
        offsets |= _stacked(column, tall)
    middles = dict(offsets)
    pulls = _pulls(columns, tall)
    for _ in range(columns.rounds):
        for column in (*columns.stops, *reversed(columns.stops)):
            _settle(column, middles, offsets, pulls)
    top = min(middle - tall[stop] / 2 for stop, middle in middles.items())
    return {stop: middle - top for stop, middle in middles.items()}


def _stacked(column: Iterable[_Stop], tall: Mapping[_Stop, float]) -> Iterator[tuple[_Stop, float]]:
    """The middles of a layer whose stops are as close as may be."""
    bottom = 0.0
    for stop in column:
        yield stop, bottom + tall[stop] / 2
        bottom += tall[stop] + _BOX_GAP


def _pulls(columns: _Columns, tall: Mapping[_Stop, float]) -> _Pulls:
    return {
        stop: [
            # Where lines only pass they have no reason to bend.
            (1.0 if tall[stop] or tall[other] else 4.0, other)
            for other in (*columns.before.get(stop, ()), *columns.after.get(stop, ()))
        ]
        for stop in chain(*columns.stops)
    }


def _settle(
    column: Sequence[_Stop],
    middles: dict[_Stop, float],
    offsets: Mapping[_Stop, float],
    pulls: _Pulls,
) -> None:
    """Moves a layer as near to its neighbours as its order and the gaps in it allow."""
    wishes = []
    for stop in column:
        strength = sum(pull for pull, _ in pulls[stop])
        aim = sum(pull * middles[other] for pull, other in pulls[stop])
        wish = aim / strength if strength else middles[stop]
        wishes.append((wish - offsets[stop], strength or 1.0))
    for stop, moved in zip(column, _never_falling(wishes), strict=True):
        middles[stop] = offsets[stop] + moved


def _never_falling(wishes: Iterable[tuple[float, float]]) -> list[float]:
    """As near to the wishes, each with its weight, as a sequence that never falls can be."""
    runs: list[tuple[float, float, int]] = []
    for wish, weight in wishes:
        count = 1
        while runs and runs[-1][0] > wish:
            other, others, more = runs.pop()
            wish = (wish * weight + other * others) / (weight + others)
            weight, count = weight + others, count + more
        runs.append((wish, weight, count))
    return [wish for wish, _, count in runs for _ in range(count)]


class _Placed(NamedTuple):
    left: float
    right: float
    bottom: float


def _packed(parts: Sequence[Layout]) -> Layout:
    """Each as high up as it fits, in a drawing about as wide as a screen."""
    area = sum((part.width + _LAYER_GAP) * (part.height + _PART_GAP) for part in parts)
    room = max(math.sqrt(area * _SHAPE), *(part.width for part in parts), 0.0)
    placed: list[_Placed] = []
    corners: dict[str, Point] = {}
    wires: dict[str, tuple[Curve, ...]] = {}
    for part in parts:
        at = _highest(part.width, room, placed)
        placed.append(_Placed(at.x, at.x + part.width, at.y + part.height))
        corners |= {name: _moved(corner, at) for name, corner in part.corners.items()}
        wires |= {
            end: tuple(_moved_curve(curve, at) for curve in curves)
            for end, curves in part.wires.items()
        }
    return Layout(
        max((box.right for box in placed), default=0.0),
        max((box.bottom for box in placed), default=0.0),
        corners,
        wires,
    )


def _highest(width: float, room: float, placed: Collection[_Placed]) -> Point:
    def top(left: float) -> float:
        return max(
            (
                box.bottom + _PART_GAP
                for box in placed
                if box.left < left + width and left < box.right
            ),
            default=0.0,
        )

    # The gap is that between layers, so that the boxes of all parts line up.
    lefts = {0.0, *(box.right + _LAYER_GAP for box in placed)}
    y, x = min((top(left), left) for left in lefts if left == 0 or left + width <= room)
    return Point(x, y)


def _moved(point: Point, by: Point) -> Point:
    return Point(point.x + by.x, point.y + by.y)


def _moved_curve(curve: Curve, by: Point) -> Curve:
    on = None if curve.on is None else curve.on + by.x
    return Curve(_moved(curve.start, by), _moved(curve.end, by), on)
