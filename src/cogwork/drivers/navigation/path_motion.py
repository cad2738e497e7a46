"""Motion along a path: the pose as a function of time."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cogwork.drivers.joint_trajectory import JointTrajectory, TrajectorySegment
from cogwork.drivers.navigation.coordinates import MapPoint, MapPose
from cogwork.drivers.navigation.polygon import Polygon, interpolate


@dataclass(frozen=True, slots=True)
class SpeedLimit:
    polygon: Polygon
    speed: float
    """Maximum speed in meters per second."""


@dataclass(frozen=True, slots=True)
class PathMotion:
    """A timed path. Pure: nothing ticks while it is followed. Turning takes no time."""

    trajectory: JointTrajectory
    path: tuple[MapPoint, ...]
    """The points from the start on, without those that only change the speed."""
    arrival_times: tuple[float, ...]
    """Seconds from the start to each stop."""
    start_yaw: float
    """The yaw before the start."""
    end_yaw: float | None
    """The yaw at the end; None keeps the direction of arrival."""

    @classmethod
    def from_legs(
        cls,
        start: MapPose,
        legs: Sequence[Sequence[MapPoint]],
        end_yaw: float | None,
        speed: float,
        limits: Sequence[SpeedLimit] = (),
    ) -> PathMotion:
        """Build a motion with one leg per stop. It starts at time 0: see `start_at`."""
        points, segments, stop_indexes = [start.point], list[TrajectorySegment](), list[int]()
        for leg in legs:
            for end in leg:
                for point in (*_speed_change_points(points[-1], end, limits), end):
                    allowed = _allowed_speed(interpolate(points[-1], point, 0.5), speed, limits)
                    segments.append(
                        TrajectorySegment(point, math.dist(points[-1], point) / allowed)
                    )
                    points.append(point)
            stop_indexes.append(len(segments))
        path = (start.point, *itertools.chain.from_iterable(legs))
        trajectory = JointTrajectory.at_rest(start.point, 0.0).follow_segments(segments, 0.0)
        return cls(
            trajectory,
            path,
            tuple(trajectory.times[index] for index in stop_indexes),
            start.yaw or 0.0,
            end_yaw,
        )

    def start_at(self, since: float) -> PathMotion:
        return replace(self, trajectory=replace(self.trajectory, since=since))

    @property
    def seconds(self) -> float:
        return self.trajectory.seconds

    @property
    def end_time(self) -> float:
        return self.trajectory.since + self.trajectory.seconds

    @property
    def end_pose(self) -> MapPose:
        x, y = self.trajectory.end
        return MapPose((x, y), self._final_yaw)

    def has_ended(self, now: float) -> bool:
        return self.trajectory.has_ended(now)

    def pose_at(self, now: float) -> MapPose:
        if self.has_ended(now):
            return self.end_pose
        x, y = self.trajectory.position_at(now)
        return MapPose((x, y), _yaw_toward(*self._current_leg(now)))

    def speed_at(self, now: float) -> float:
        if self.has_ended(now):
            return 0.0
        index = self._next_point_index(now)
        start, end = self.trajectory.times[index - 1 : index + 1]
        return math.dist(*self._current_leg(now)) / (end - start) if end > start else 0.0

    def stops_passed(self, now: float) -> int:
        """Return the number of stops that were passed."""
        return bisect.bisect_right(self.arrival_times, now - self.trajectory.since)

    def remaining_distance(self, now: float) -> float:
        """Return the remaining distance in meters."""
        if self.has_ended(now):
            return 0.0
        ahead = [self.pose_at(now).point, *self._points[self._next_point_index(now) :]]
        return sum(math.dist(one, other) for one, other in itertools.pairwise(ahead))

    @property
    def _final_yaw(self) -> float:
        if self.end_yaw is not None:
            return self.end_yaw
        moves = [leg for leg in itertools.pairwise(self._points) if leg[0] != leg[1]]
        return _yaw_toward(*moves[-1]) if moves else self.start_yaw

    @property
    def _points(self) -> list[MapPoint]:
        return [(x, y) for x, y in self.trajectory.points]

    def _current_leg(self, now: float) -> tuple[MapPoint, MapPoint]:
        index = self._next_point_index(now)
        return self._points[index - 1], self._points[index]

    def _next_point_index(self, now: float) -> int:
        """Return the index of the next point."""
        index = bisect.bisect_right(self.trajectory.times, now - self.trajectory.since)
        return min(max(index, 1), len(self.trajectory.times) - 1)


def _speed_change_points(
    start: MapPoint, end: MapPoint, limits: Sequence[SpeedLimit]
) -> list[MapPoint]:
    """Return the points where the speed changes."""
    fractions = {fraction for each in limits for fraction in each.polygon.intersections(start, end)}
    return [interpolate(start, end, fraction) for fraction in sorted(fractions)]


def _allowed_speed(point: MapPoint, speed: float, limits: Sequence[SpeedLimit]) -> float:
    return min([speed, *(each.speed for each in limits if each.polygon.contains(point))])


def _yaw_toward(start: MapPoint, end: MapPoint) -> float:
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0]))
