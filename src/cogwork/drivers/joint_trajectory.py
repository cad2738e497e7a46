"""Joint trajectories: the position of every joint as a function of time."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Joints = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TrajectorySegment:
    """One segment of a trajectory, in a straight line from the end of the previous one."""

    end: Joints
    seconds: float
    ramp: float = 0.0
    """Seconds of acceleration at the start and of deceleration at the end; 0 is a constant
    speed."""


@dataclass(frozen=True, slots=True)
class JointTrajectory:
    """A sequence of timed points. Pure: a position is computed on request, without a timer."""

    since: float
    """The start time in seconds; `times` are relative to it."""
    times: tuple[float, ...]
    """The arrival time at each point, ascending."""
    points: tuple[Joints, ...]
    ramps: tuple[float, ...]
    """The ramp of the segment that leads to each point."""

    @classmethod
    def at_rest(cls, point: Joints, now: float) -> JointTrajectory:
        return cls(now, (0.0,), (point,), (0.0,))

    @property
    def seconds(self) -> float:
        return self.times[-1]

    @property
    def end(self) -> Joints:
        return self.points[-1]

    def position_at(self, now: float) -> Joints:
        elapsed = now - self.since
        index = bisect.bisect_right(self.times, elapsed)
        if index == 0:
            return self.points[0]
        if index == len(self.times):
            return self.end
        start, end = self.times[index - 1 : index + 1]
        fraction = _trapezoidal_progress(elapsed - start, end - start, self.ramps[index])
        return _interpolate(self.points[index - 1], self.points[index], fraction)

    def has_ended(self, now: float) -> bool:
        return self.remaining_seconds(now) <= 0

    def remaining_seconds(self, now: float) -> float:
        return self.since + self.seconds - now

    def move_through(self, points: Sequence[Joints], speeds: Joints, now: float) -> JointTrajectory:
        """Return a trajectory from the current position through the points.

        On each segment all joints arrive together, and no joint exceeds its speed.
        """
        pairs = itertools.pairwise([self.position_at(now), *points])
        return self.follow_segments(
            [
                TrajectorySegment(end, max(_travel_times(start, end, speeds), default=0.0))
                for start, end in pairs
            ],
            now,
        )

    def move_independently(self, end: Joints, speeds: Joints, now: float) -> JointTrajectory:
        """Return a trajectory from the current position on which each joint moves at its own speed.

        Joints do not wait for each other.
        """
        start = self.position_at(now)
        arrivals = _travel_times(start, end, speeds)
        segments, elapsed = [], 0.0
        for time in sorted({*arrivals}):
            fractions = [min(time / arrival, 1.0) if arrival else 1.0 for arrival in arrivals]
            segments.append(TrajectorySegment(_interpolate(start, end, *fractions), time - elapsed))
            elapsed = time
        return self.follow_segments(segments, now)

    def follow_segments(self, segments: Iterable[TrajectorySegment], now: float) -> JointTrajectory:
        """Return a trajectory from the current position along the segments."""
        times, points, ramps = [0.0], [self.position_at(now)], [0.0]
        for segment in segments:
            times.append(times[-1] + segment.seconds)
            points.append(segment.end)
            ramps.append(segment.ramp)
        return JointTrajectory(now, tuple(times), tuple(points), tuple(ramps))

    def append_points(
        self, times: Sequence[float], points: Sequence[Joints], now: float
    ) -> JointTrajectory:
        """Return this trajectory with more points appended.

        If this trajectory has already ended, its end is moved to now, so that the new points are
        not late. Points in the past are dropped.
        """
        since = max(self.since, now - self.seconds)
        past = max(bisect.bisect_right(self.times, now - since) - 1, 0)
        return JointTrajectory(
            since,
            (*self.times[past:], *times),
            (*self.points[past:], *points),
            (*self.ramps[past:], *(0.0 for _ in times)),
        )


def _travel_times(start: Joints, end: Joints, speeds: Joints) -> list[float]:
    """Return the seconds that each joint needs to get from start to end."""
    return [abs(to - of) / speed for of, to, speed in zip(start, end, speeds, strict=True)]


def _trapezoidal_progress(elapsed: float, seconds: float, ramp: float) -> float:
    """Return the completed fraction of a segment. The speed between the ramps is 1 / (seconds -
    ramp)."""
    if elapsed < ramp:
        return elapsed**2 / (2 * ramp * (seconds - ramp))
    if seconds - elapsed < ramp:
        return 1 - (seconds - elapsed) ** 2 / (2 * ramp * (seconds - ramp))
    return (elapsed - ramp / 2) / (seconds - ramp)


def _interpolate(start: Joints, end: Joints, *fractions: float) -> Joints:
    """Interpolate with one fraction for all joints, or with one for each joint."""
    each = itertools.cycle(fractions)
    # At a fraction of 1, return `end` itself: rounding must not change the position that a client
    # requested.
    return tuple(
        to if fraction == 1 else math.fsum((of * (1 - fraction), to * fraction))
        for of, to, fraction in zip(start, end, each, strict=False)
    )
