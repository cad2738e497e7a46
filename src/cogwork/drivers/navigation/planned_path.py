"""A planned path: straight steps, each with its speed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from cogwork.drivers.navigation.coordinates import MapPoint
from cogwork.drivers.navigation.polygon import Polygon, interpolate, nearest_on_line


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    polygon: Polygon
    speed: float
    """Maximum speed in meters per second."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """A straight line at one speed."""

    start: MapPoint
    end: MapPoint
    speed: float
    """Speed in meters per second."""
    ends_leg: bool
    """Whether the step ends at a stop."""

    @property
    def length(self) -> float:
        return math.dist(self.start, self.end)

    @property
    def yaw(self) -> float:
        """The direction in degrees counterclockwise from x."""
        return yaw_toward(self.start, self.end)

    def distance_from(self, point: MapPoint) -> float:
        """Return the distance of a point from the line."""
        return math.dist(point, nearest_on_line(point, self.start, self.end))


@dataclass(frozen=True, slots=True)
class PlannedPath:
    points: tuple[MapPoint, ...]
    """All points including the start, but without points where only the speed changes."""
    steps: tuple[PathStep, ...]
    end_yaw: float | None
    """The yaw at the end; None keeps the direction of arrival."""

    @classmethod
    def from_legs(
        cls,
        start: MapPoint,
        legs: Sequence[Sequence[MapPoint]],
        end_yaw: float | None,
        speed: float,
        limits: Sequence[SpeedLimit] = (),
    ) -> PlannedPath:
        """Build a path with one leg for each stop."""
        points, steps = [start], list[PathStep]()
        for leg in legs:
            for index, end in enumerate(leg):
                steps += _split_at_limits(points[-1], end, speed, limits, index == len(leg) - 1)
                points.append(end)
        return cls(tuple(points), tuple(steps), end_yaw)

    @property
    def length(self) -> float:
        return path_length(self.points)

    def remaining_distance(self, step: int, current: MapPoint) -> float:
        """Return the distance in meters from a point on the given step to the end of the path."""
        if step >= len(self.steps):
            return 0.0
        ahead = sum(each.length for each in self.steps[step + 1 :])
        return math.dist(current, self.steps[step].end) + ahead


def path_length(points: Sequence[MapPoint]) -> float:
    return sum(math.dist(start, end) for start, end in itertools.pairwise(points))


def yaw_toward(start: MapPoint, end: MapPoint) -> float:
    """Return the direction in degrees counterclockwise from x."""
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))


def _split_at_limits(
    start: MapPoint, end: MapPoint, speed: float, limits: Sequence[SpeedLimit], ends_leg: bool
) -> list[PathStep]:
    """Split a line into steps where the speed changes."""
    fractions = {fraction for each in limits for fraction in each.polygon.intersections(start, end)}
    points = [start, *(interpolate(start, end, each) for each in sorted(fractions)), end]
    return [
        PathStep(
            *line,
            _allowed_speed(interpolate(*line, 0.5), speed, limits),
            ends_leg and index == len(points) - 1,
        )
        for index, line in enumerate(itertools.pairwise(points), 1)
    ]


def _allowed_speed(point: MapPoint, speed: float, limits: Sequence[SpeedLimit]) -> float:
    return min([speed, *(each.speed for each in limits if each.polygon.contains(point))])
