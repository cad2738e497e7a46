"""Polygons: containment, intersection with a line, and inflation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cogwork.drivers.navigation.coordinates import MapPoint

_CIRCLE_CORNERS = 16


@dataclass(frozen=True, slots=True)
class Polygon:
    """A simple polygon with counterclockwise corners."""

    corners: tuple[MapPoint, ...]
    low: MapPoint = field(init=False)
    high: MapPoint = field(init=False)
    """The upper corner of the bounding box; `low` is the lower one."""

    def __post_init__(self) -> None:
        xs, ys = zip(*self.corners, strict=True)
        object.__setattr__(self, "low", (min(xs), min(ys)))
        object.__setattr__(self, "high", (max(xs), max(ys)))

    @classmethod
    def from_corners(cls, corners: Sequence[MapPoint]) -> Polygon:
        return cls(tuple(corners) if _signed_area(corners) > 0 else tuple(reversed(corners)))

    @classmethod
    def from_circle(cls, center: MapPoint, radius: float) -> Polygon:
        """Return a polygon that encloses the circle."""
        around = radius / math.cos(math.pi / _CIRCLE_CORNERS)
        angles = (2 * math.pi * each / _CIRCLE_CORNERS for each in range(_CIRCLE_CORNERS))
        x, y = center
        return cls(tuple((x + around * math.cos(a), y + around * math.sin(a)) for a in angles))

    @classmethod
    def from_box(cls, center: MapPoint, size: MapPoint, theta: float) -> Polygon:
        """`theta` is the counterclockwise rotation in degrees."""
        sine, cosine = math.sin(math.radians(theta)), math.cos(math.radians(theta))
        halves = ((-size[0], -size[1]), (size[0], -size[1]), size, (-size[0], size[1]))
        return cls(
            tuple(
                (center[0] + (x * cosine - y * sine) / 2, center[1] + (x * sine + y * cosine) / 2)
                for x, y in halves
            )
        )

    @property
    def edges(self) -> list[tuple[MapPoint, MapPoint]]:
        return list(itertools.pairwise((*self.corners, self.corners[0])))

    @property
    def area(self) -> float:
        return _signed_area(self.corners)

    def contains(self, point: MapPoint) -> bool:
        x, y = point
        if not (self.low[0] <= x <= self.high[0] and self.low[1] <= y <= self.high[1]):
            return False
        return sum(1 for at in self.scanline_crossings(y) if at > x) % 2 == 1

    def scanline_crossings(self, y: float) -> list[float]:
        """Return the crossings of the horizontal line at y with the outline, ascending.

        The inside is between the first and the second crossing, the third and the fourth, and so
        on.
        """
        return sorted(
            a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0])
            for a, b in self.edges
            if (a[1] > y) != (b[1] > y)
        )

    def intersections(self, start: MapPoint, end: MapPoint) -> list[float]:
        """Return the crossings of the line from start to end with the outline, as ascending
        fractions."""
        if self._is_outside_bounds(start, end):
            return []
        direction = (end[0] - start[0], end[1] - start[1])
        fractions = (_intersection_fraction(start, direction, edge) for edge in self.edges)
        return sorted(
            fraction for fraction in fractions if fraction is not None and 0 < fraction < 1
        )

    def intersects(self, start: MapPoint, end: MapPoint) -> bool:
        """Return whether a part of the line from start to end is inside."""
        if self._is_outside_bounds(start, end):
            return False
        fractions = (0.0, *self.intersections(start, end), 1.0)
        midpoints = (interpolate(start, end, (a + b) / 2) for a, b in itertools.pairwise(fractions))
        return any(self.contains(point) for point in (start, *midpoints, end))

    def nearest_point(self, point: MapPoint) -> MapPoint:
        """Return the point of the outline that is nearest to a point."""
        nearest = (nearest_on_line(point, *edge) for edge in self.edges)
        return min(nearest, key=lambda each: math.dist(each, point))

    def inflate(self, by: float) -> Polygon:
        """Return the polygon with every edge moved outward by a distance."""
        before = (self.corners[-1], *self.corners[:-1])
        after = (*self.corners[1:], self.corners[0])
        return Polygon(
            tuple(
                _offset_corner(*corners, by)
                for corners in zip(before, self.corners, after, strict=True)
            )
        )

    def _is_outside_bounds(self, start: MapPoint, end: MapPoint) -> bool:
        """Return whether the line misses the bounding box."""
        return any(
            max(start[axis], end[axis]) < self.low[axis]
            or min(start[axis], end[axis]) > self.high[axis]
            for axis in (0, 1)
        )


def interpolate(start: MapPoint, end: MapPoint, fraction: float) -> MapPoint:
    return (start[0] + (end[0] - start[0]) * fraction, start[1] + (end[1] - start[1]) * fraction)


def nearest_on_line(point: MapPoint, start: MapPoint, end: MapPoint) -> MapPoint:
    """Return the point between start and end that is nearest to a point."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    if not (dx or dy):
        return start
    along = ((point[0] - start[0]) * dx + (point[1] - start[1]) * dy) / (dx * dx + dy * dy)
    return interpolate(start, end, min(max(along, 0.0), 1.0))


def _signed_area(corners: Sequence[MapPoint]) -> float:
    """Return the area, which is positive if the corners are counterclockwise."""
    around = itertools.pairwise((*corners, corners[0]))
    return sum(a[0] * b[1] - b[0] * a[1] for a, b in around) / 2


def _intersection_fraction(
    start: MapPoint, direction: MapPoint, edge: tuple[MapPoint, MapPoint]
) -> float | None:
    """Return the fraction of the line at which it meets the edge, or None."""
    (ax, ay), (bx, by) = edge
    edge_direction = (bx - ax, by - ay)
    cross_product = direction[0] * edge_direction[1] - direction[1] * edge_direction[0]
    if cross_product == 0:
        return None
    dx, dy = ax - start[0], ay - start[1]
    if not 0 <= (dx * direction[1] - dy * direction[0]) / cross_product <= 1:
        return None
    return (dx * edge_direction[1] - dy * edge_direction[0]) / cross_product


def _offset_corner(before: MapPoint, corner: MapPoint, after: MapPoint, by: float) -> MapPoint:
    """Move a corner outward, so that both of its edges move outward by the given distance."""
    one, other = _outward_normal(before, corner), _outward_normal(corner, after)
    # Limit the offset, which would be unbounded at a spike.
    scale = by / max(1 + one[0] * other[0] + one[1] * other[1], 0.05)
    return (corner[0] + (one[0] + other[0]) * scale, corner[1] + (one[1] + other[1]) * scale)


def _outward_normal(start: MapPoint, end: MapPoint) -> MapPoint:
    length = math.dist(start, end)
    return ((end[1] - start[1]) / length, (start[0] - end[0]) / length)
