"""The outline of an area: what is inside, what leads through it, and how to keep away from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cogwork.drivers.navigation.chart import Spot

_CORNERS_OF_A_CIRCLE = 16


@dataclass(frozen=True, slots=True)
class Outline:
    """Of a polygon, counterclockwise."""

    corners: tuple[Spot, ...]
    low: Spot = field(init=False)
    high: Spot = field(init=False)
    """The box around it."""

    def __post_init__(self) -> None:
        xs, ys = zip(*self.corners, strict=True)
        object.__setattr__(self, "low", (min(xs), min(ys)))
        object.__setattr__(self, "high", (max(xs), max(ys)))

    @classmethod
    def polygon(cls, corners: Sequence[Spot]) -> Outline:
        return cls(tuple(corners) if _area(corners) > 0 else tuple(reversed(corners)))

    @classmethod
    def circle(cls, center: Spot, radius: float) -> Outline:
        """A polygon around it, so that nothing of the circle is outside."""
        around = radius / math.cos(math.pi / _CORNERS_OF_A_CIRCLE)
        angles = (2 * math.pi * each / _CORNERS_OF_A_CIRCLE for each in range(_CORNERS_OF_A_CIRCLE))
        x, y = center
        return cls(tuple((x + around * math.cos(a), y + around * math.sin(a)) for a in angles))

    @classmethod
    def box(cls, center: Spot, size: Spot, theta: float) -> Outline:
        """`theta`: degrees by which it is turned to the left."""
        sine, cosine = math.sin(math.radians(theta)), math.cos(math.radians(theta))
        halves = ((-size[0], -size[1]), (size[0], -size[1]), size, (-size[0], size[1]))
        return cls(
            tuple(
                (center[0] + (x * cosine - y * sine) / 2, center[1] + (x * sine + y * cosine) / 2)
                for x, y in halves
            )
        )

    @property
    def edges(self) -> list[tuple[Spot, Spot]]:
        return list(itertools.pairwise((*self.corners, self.corners[0])))

    @property
    def area(self) -> float:
        return _area(self.corners)

    def contains(self, spot: Spot) -> bool:
        x, y = spot
        if not (self.low[0] <= x <= self.high[0] and self.low[1] <= y <= self.high[1]):
            return False
        return sum(1 for at in self.crossed_at(y) if at > x) % 2 == 1

    def crossed_at(self, y: float) -> list[float]:
        """Where a level line at y crosses the outline: inside is between the first and the second,
        the third and the fourth, and so on."""
        return sorted(
            a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
            for a, b in self.edges
            if (a[1] > y) != (b[1] > y)
        )

    def cuts(self, start: Spot, end: Spot) -> list[float]:
        """Which shares of the way from start to end lie on the outline, in order."""
        if self._is_aside(start, end):
            return []
        way = (end[0] - start[0], end[1] - start[1])
        shares = (_share(start, way, edge) for edge in self.edges)
        return sorted(share for share in shares if share is not None and 0 < share < 1)

    def blocks(self, start: Spot, end: Spot) -> bool:
        """Whether some of the way from start to end is inside."""
        if self._is_aside(start, end):
            return False
        shares = (0.0, *self.cuts(start, end), 1.0)
        middles = (between(start, end, (a + b) / 2) for a, b in itertools.pairwise(shares))
        return any(self.contains(spot) for spot in (start, *middles, end))

    def grown(self, by: float) -> Outline:
        """So that its edges are that far outside of where they were."""
        before = (self.corners[-1], *self.corners[:-1])
        after = (*self.corners[1:], self.corners[0])
        return Outline(
            tuple(
                _pushed(*corners, by) for corners in zip(before, self.corners, after, strict=True)
            )
        )

    def _is_aside(self, start: Spot, end: Spot) -> bool:
        """Whether not even the box around it is touched."""
        return any(
            max(start[axis], end[axis]) < self.low[axis]
            or min(start[axis], end[axis]) > self.high[axis]
            for axis in (0, 1)
        )


def between(start: Spot, end: Spot, share: float) -> Spot:
    return (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)


def _area(corners: Sequence[Spot]) -> float:
    """Positive if they run counterclockwise."""
    around = itertools.pairwise((*corners, corners[0]))
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in around) / 2


def _share(start: Spot, way: Spot, edge: tuple[Spot, Spot]) -> float | None:
    """How much of the way is gone when it meets the edge; None if it does not."""
    (ax, ay), (bx, by) = edge
    along = (bx - ax, by - ay)
    across = way[0] * along[1] - way[1] * along[0]
    if across == 0:
        return None
    dx, dy = ax - start[0], ay - start[1]
    if not 0 <= (dx * way[1] - dy * way[0]) / across <= 1:
        return None
    return (dx * along[1] - dy * along[0]) / across


def _pushed(before: Spot, corner: Spot, after: Spot, by: float) -> Spot:
    """Out along the middle of both edges, so that each of them ends up that far outside."""
    one, other = _outward(before, corner), _outward(corner, after)
    # Where an outline turns back on itself, there is no middle.
    reach = by / max(1 + one[0] * other[0] + one[1] * other[1], 0.05)
    return (corner[0] + (one[0] + other[0]) * reach, corner[1] + (one[1] + other[1]) * reach)


def _outward(start: Spot, end: Spot) -> Spot:
    length = math.dist(start, end)
    return ((end[1] - start[1]) / length, (start[0] - end[0]) / length)
