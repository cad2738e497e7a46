"""Layered layout of a directed graph (Sugiyama): positions of boxes and curves between them.

Edges run from left to right. Boxes are assigned to layers by the longest path, ordered by
barycenter to reduce crossings, and moved up and down to straighten the edges. Connected components
are laid out separately and packed side by side.
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

Edge = tuple[str, str]

_LAYER_GAP = 64.0
_BOX_GAP = 16.0
_COMPONENT_GAP = 40.0
_ASPECT_RATIO = 1.6
"""Target ratio of width to height when components are packed."""
_MIN_LAYER_CAPACITY = 10
"""Number of boxes that a layer always accepts."""
_MAX_ROUNDS = 12
_MOVE_BUDGET = 30_000
"""Total number of node moves: a huge graph gets fewer rounds, not a longer wait."""


class Point(NamedTuple):
    x: float
    y: float


class Curve(NamedTuple):
    """A curve that is horizontal at `start` and at `end`."""

    start: Point
    end: Point
    extend_to: float | None
    """X coordinate to which it continues horizontally; None if it ends at its box."""


@dataclass(frozen=True, slots=True)
class GraphLayout:
    width: float
    height: float
    corners: Mapping[str, Point]
    """Upper left corner of each box."""
    curves: Mapping[str, tuple[Curve, ...]]
    """Curves that lead to each box. Edges to the same box share their last stretch."""


def arrange(heights: Mapping[str, float], width: float, edges: Iterable[Edge]) -> GraphLayout:
    """Lay out boxes of one width. Self-loops are ignored."""
    between = sorted({(start, end) for start, end in edges if start != end})
    parts = [
        _layout_component(names, width, heights, inner)
        for names, inner in _connected_components(heights, between)
    ]
    parts.sort(key=lambda part: (-part.height, -part.width, min(part.corners)))
    return _pack(parts)


def _connected_components(
    names: Iterable[str], edges: Sequence[Edge]
) -> Iterator[tuple[list[str], list[Edge]]]:
    """Yield each connected component with its edges."""
    neighbors = defaultdict(list)
    for start, end in edges:
        neighbors[start].append(end)
        neighbors[end].append(start)
    seen: set[str] = set()
    for name in sorted(names):
        if name in seen:
            continue
        part, todo = set(), [name]
        while todo:
            found = todo.pop()
            if found not in part:
                part.add(found)
                todo += neighbors[found]
        seen |= part
        yield sorted(part), [edge for edge in edges if edge[0] in part]


class _LayerNode(NamedTuple):
    """A box in its own layer, or a dummy node that routes the edges to it through a layer."""

    box: str
    layer: int


_Link = tuple[_LayerNode, _LayerNode]
"""A link between nodes of adjacent layers."""


@dataclass(frozen=True, slots=True)
class _Layering:
    """The nodes of each layer, from left to right and top to bottom."""

    nodes: list[list[_LayerNode]]
    predecessors: Mapping[_LayerNode, Sequence[_LayerNode]]
    """Neighbors of a node in the layer to its left."""
    successors: Mapping[_LayerNode, Sequence[_LayerNode]]

    @property
    def rounds(self) -> int:
        return max(1, min(_MAX_ROUNDS, _MOVE_BUDGET // sum(map(len, self.nodes))))


def _layout_component(
    names: Sequence[str], width: float, heights: Mapping[str, float], edges: Sequence[Edge]
) -> GraphLayout:
    backward = _find_back_edges(names, edges)
    layers = _assign_layers(names, {edge[::-1] if edge in backward else edge for edge in edges})
    forward = _build_links(layers, (edge for edge in edges if edge not in backward))
    turned = {edge: _build_links(layers, [edge[::-1]])[edge[0]] for edge in sorted(backward)}
    columns = _build_layering(layers, {*chain(*forward.values(), *turned.values())})
    _reduce_crossings(columns)
    node_heights = {
        node: heights[node.box] if layers[node.box] == node.layer else 0.0
        for node in chain(*columns.nodes)
    }
    grid = _Grid(width, node_heights, _compute_centers(columns, node_heights))

    wires = {end: [grid.forward_curve(*link) for link in found] for end, found in forward.items()}
    for (_, end), found in turned.items():
        wires.setdefault(end, []).extend(grid.backward_curve(*link) for link in found)
    return GraphLayout(
        grid.right(len(columns.nodes) - 1),
        max(center + node_heights[node] / 2 for node, center in grid.centers.items()),
        {name: grid.corner(_LayerNode(name, layer)) for name, layer in layers.items()},
        {end: tuple(dict.fromkeys(curves)) for end, curves in wires.items()},
    )


@dataclass(frozen=True, slots=True)
class _Grid:
    """Coordinates of the nodes."""

    width: float
    heights: Mapping[_LayerNode, float]
    """Height of each node; 0 for dummy nodes."""
    centers: Mapping[_LayerNode, float]

    def left(self, layer: int) -> float:
        return layer * (self.width + _LAYER_GAP)

    def right(self, layer: int) -> float:
        return self.left(layer) + self.width

    def corner(self, box: _LayerNode) -> Point:
        return Point(self.left(box.layer), self.centers[box] - self.heights[box] / 2)

    def forward_curve(self, here: _LayerNode, there: _LayerNode) -> Curve:
        start = Point(self.right(here.layer), self.centers[here])
        end = Point(self.left(there.layer), self.centers[there])
        return Curve(start, end, None if self.heights[there] else self.right(there.layer))

    def backward_curve(self, here: _LayerNode, there: _LayerNode) -> Curve:
        start, end, _ = self.forward_curve(here, there)
        return Curve(end, start, None if self.heights[here] else self.left(here.layer))


def _find_back_edges(names: Sequence[str], edges: Sequence[Edge]) -> set[Edge]:
    """Return the edges that close a cycle; the others form an acyclic graph."""
    ends = defaultdict(list)
    for start, end in edges:
        ends[start].append(end)
    pointed_at = {end for _, end in edges}
    found: set[Edge] = set()
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


def _assign_layers(names: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Assign layers by the longest path, then move boxes with more successors to the right."""
    starts: dict[str, list[str]] = {name: [] for name in names}
    ends: dict[str, list[str]] = {name: [] for name in names}
    for start, end in sorted(edges):
        starts[end].append(start)
        ends[start].append(end)
    order = list(TopologicalSorter(starts).static_order())
    layers: dict[str, int] = {}
    for name in order:
        layers[name] = max((layers[start] + 1 for start in starts[name]), default=0)
    for name in reversed(order):
        if len(ends[name]) > len(starts[name]):
            layers[name] = min(layers[end] for end in ends[name]) - 1
    capacity = max(_MIN_LAYER_CAPACITY, math.isqrt(4 * len(names)))
    _spread_layers(layers, [name for name in names if not starts[name]], capacity, -1)
    _spread_layers(layers, [name for name in names if not ends[name]], capacity, +1)
    first = min(layers.values())
    return {name: layer - first for name, layer in layers.items()}


def _spread_layers(layers: dict[str, int], free: Iterable[str], capacity: int, step: int) -> None:
    """Move sources left or sinks right, out of layers with too many boxes."""
    full = Counter(layers.values())
    for name in sorted(free, key=lambda name: (-step * layers[name], name)):
        while full[layers[name]] > capacity:
            full[layers[name]] -= 1
            layers[name] += step
            full[layers[name]] += 1


def _build_links(layers: Mapping[str, int], edges: Iterable[Edge]) -> dict[str, list[_Link]]:
    """Return links by target box: a branch from each start, and a shared trunk between layers."""
    starts = defaultdict(list)
    for start, end in sorted(edges):
        starts[end].append(_LayerNode(start, layers[start]))
    return {
        end: [*_branch_links(end, nodes), *_trunk_links(end, nodes, layers[end])]
        for end, nodes in starts.items()
    }


def _branch_links(end: str, starts: Iterable[_LayerNode]) -> Iterator[_Link]:
    for start in starts:
        yield start, _LayerNode(end, start.layer + 1)


def _trunk_links(end: str, starts: Iterable[_LayerNode], layer: int) -> Iterator[_Link]:
    first = min(start.layer for start in starts) + 1
    return pairwise(_LayerNode(end, passed) for passed in range(first, layer + 1))


def _build_layering(layers: Mapping[str, int], links: Iterable[_Link]) -> _Layering:
    before, after = defaultdict(list), defaultdict(list)
    for left, right in sorted(links):
        before[right].append(left)
        after[left].append(right)
    boxes: dict[int, list[_LayerNode]] = defaultdict(list)
    passed: dict[int, list[_LayerNode]] = defaultdict(list)
    for name, layer in sorted(layers.items()):
        boxes[layer].append(_LayerNode(name, layer))
    for node in sorted(before):
        if layers[node.box] != node.layer:
            passed[node.layer].append(node)
    nodes = [_insert_in_middle(boxes[layer], passed[layer]) for layer in range(max(boxes) + 1)]
    return _Layering(nodes, before, after)


def _insert_in_middle(boxes: list[_LayerNode], passed: list[_LayerNode]) -> list[_LayerNode]:
    """Insert the dummy nodes in the middle, the shortest way for edges from above and below."""
    half = len(boxes) // 2
    return boxes[:half] + passed + boxes[half:]


def _reduce_crossings(columns: _Layering) -> None:
    best, fewest = [list(column) for column in columns.nodes], _count_crossings(columns)
    for round_number in range(columns.rounds):
        if fewest == 0:
            break
        # Reversing ties in some rounds helps to escape local minima.
        _sweep(columns, rightward=round_number % 2 == 0, reverse_ties=round_number % 4 >= 2)
        if (crossings := _count_crossings(columns)) < fewest:
            best, fewest = [list(column) for column in columns.nodes], crossings
    columns.nodes[:] = best


def _sweep(columns: _Layering, rightward: bool, reverse_ties: bool) -> None:
    """Order each layer by the barycenters of its neighbors in the previously ordered layer."""
    neighbors = columns.predecessors if rightward else columns.successors
    ranks: dict[_LayerNode, float] = {}

    def barycenter(node: _LayerNode) -> float:
        near = neighbors.get(node)
        return sum(ranks[other] for other in near) / len(near) if near else ranks[node]

    for column in columns.nodes if rightward else reversed(columns.nodes):
        ranks |= _compute_ranks(column)
        if reverse_ties:
            column.reverse()
        column.sort(key=barycenter)
        ranks |= _compute_ranks(column)


def _compute_ranks(column: Sequence[_LayerNode]) -> dict[_LayerNode, float]:
    """Return ranks from 0 to 1, so that layers of different lengths are comparable."""
    return {node: (rank + 0.5) / len(column) for rank, node in enumerate(column)}


def _count_crossings(columns: _Layering) -> int:
    return sum(
        _count_crossings_between(left, right, columns.successors)
        for left, right in pairwise(columns.nodes)
    )


def _count_crossings_between(
    left: Sequence[_LayerNode],
    right: Sequence[_LayerNode],
    after: Mapping[_LayerNode, Sequence[_LayerNode]],
) -> int:
    ranks = {node: rank for rank, node in enumerate(right)}
    ended: list[int] = []
    crossings = 0
    for node in left:
        ends = sorted(ranks[other] for other in after.get(node, ()))
        crossings += sum(len(ended) - bisect_right(ended, end) for end in ends)
        for end in ends:
            insort(ended, end)
    return crossings


_Pulls = Mapping[_LayerNode, Sequence[tuple[float, _LayerNode]]]
"""Weighted neighbors that pull each node up or down."""


def _compute_centers(
    columns: _Layering, node_heights: Mapping[_LayerNode, float]
) -> dict[_LayerNode, float]:
    """Return the vertical center of each node, measured from the top of the graph."""
    offsets: dict[_LayerNode, float] = {}
    for column in columns.nodes:
        offsets |= _stack(column, node_heights)
    centers = dict(offsets)
    pulls = _compute_pulls(columns, node_heights)
    for _ in range(columns.rounds):
        for column in (*columns.nodes, *reversed(columns.nodes)):
            _settle(column, centers, offsets, pulls)
    top = min(center - node_heights[node] / 2 for node, center in centers.items())
    return {node: center - top for node, center in centers.items()}


def _stack(
    column: Iterable[_LayerNode], node_heights: Mapping[_LayerNode, float]
) -> Iterator[tuple[_LayerNode, float]]:
    """Yield the centers of a layer whose nodes are packed as closely as allowed."""
    bottom = 0.0
    for node in column:
        yield node, bottom + node_heights[node] / 2
        bottom += node_heights[node] + _BOX_GAP


def _compute_pulls(columns: _Layering, node_heights: Mapping[_LayerNode, float]) -> _Pulls:
    return {
        node: [
            # Edges between dummy nodes should stay straight.
            (1.0 if node_heights[node] or node_heights[other] else 4.0, other)
            for other in (*columns.predecessors.get(node, ()), *columns.successors.get(node, ()))
        ]
        for node in chain(*columns.nodes)
    }


def _settle(
    column: Sequence[_LayerNode],
    centers: dict[_LayerNode, float],
    offsets: Mapping[_LayerNode, float],
    pulls: _Pulls,
) -> None:
    """Move a layer as close to its neighbors as its order and gaps allow."""
    targets = []
    for node in column:
        strength = sum(pull for pull, _ in pulls[node])
        aim = sum(pull * centers[other] for pull, other in pulls[node])
        target = aim / strength if strength else centers[node]
        targets.append((target - offsets[node], strength or 1.0))
    for node, moved in zip(column, _isotonic_regression(targets), strict=True):
        centers[node] = offsets[node] + moved


def _isotonic_regression(targets: Iterable[tuple[float, float]]) -> list[float]:
    """Return the non-decreasing sequence closest to the weighted targets."""
    runs: list[tuple[float, float, int]] = []
    for target, weight in targets:
        count = 1
        while runs and runs[-1][0] > target:
            other, others, more = runs.pop()
            target = (target * weight + other * others) / (weight + others)
            weight, count = weight + others, count + more
        runs.append((target, weight, count))
    return [target for target, _, count in runs for _ in range(count)]


class _PackedBox(NamedTuple):
    left: float
    right: float
    bottom: float


def _pack(parts: Sequence[GraphLayout]) -> GraphLayout:
    """Pack each component as high up as it fits, toward the target aspect ratio."""
    area = sum((part.width + _LAYER_GAP) * (part.height + _COMPONENT_GAP) for part in parts)
    room = max(math.sqrt(area * _ASPECT_RATIO), *(part.width for part in parts), 0.0)
    placed: list[_PackedBox] = []
    corners: dict[str, Point] = {}
    wires: dict[str, tuple[Curve, ...]] = {}
    for part in parts:
        at = _find_position(part.width, room, placed)
        placed.append(_PackedBox(at.x, at.x + part.width, at.y + part.height))
        corners |= {name: _translate(corner, at) for name, corner in part.corners.items()}
        wires |= {
            end: tuple(_translate_curve(curve, at) for curve in curves)
            for end, curves in part.curves.items()
        }
    return GraphLayout(
        max((box.right for box in placed), default=0.0),
        max((box.bottom for box in placed), default=0.0),
        corners,
        wires,
    )


def _find_position(width: float, room: float, placed: Collection[_PackedBox]) -> Point:
    def top(left: float) -> float:
        return max(
            (
                box.bottom + _COMPONENT_GAP
                for box in placed
                if box.left < left + width and left < box.right
            ),
            default=0.0,
        )

    # The gap equals that between layers, so that the boxes of all components line up.
    lefts = {0.0, *(box.right + _LAYER_GAP for box in placed)}
    y, x = min((top(left), left) for left in lefts if left == 0 or left + width <= room)
    return Point(x, y)


def _translate(point: Point, by: Point) -> Point:
    return Point(point.x + by.x, point.y + by.y)


def _translate_curve(curve: Curve, by: Point) -> Curve:
    on = None if curve.extend_to is None else curve.extend_to + by.x
    return Curve(_translate(curve.start, by), _translate(curve.end, by), on)
