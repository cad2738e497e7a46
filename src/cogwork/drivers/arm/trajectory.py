"""Joint positions with times, batch by batch, made into the course of an arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viam.components.arm import Arm

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.course import Course, Joints

AHEAD = 10_000
"""Points that are known ahead; further batches wait until fewer are."""
_APART = 1.0
"""Degrees, or millimetres, that the first point may be off from where the arm is."""
_ROUNDING = 1e-6


@dataclass(slots=True)
class Trajectory:
    check: Callable[[Sequence[float]], Joints]
    """Refuses what the joints do not reach."""
    speed: float
    """How fast each of them goes at most."""
    _time: float = math.nan
    _end: Joints = ()
    """The last point so far, and when it is due."""

    def extend(self, course: Course, points: Sequence[Arm.TrajectoryPoint], now: float) -> Course:
        """What is wrong with one point is wrong with its whole batch."""
        times, joints = [], []
        for point in points:
            due, positions = point.time.total_seconds(), self.check(point.positions)
            if self._end:
                self._check_speed(positions, due)
                times.append(due)
                joints.append(positions)
            else:
                _check_start(course.end, positions)
            self._time, self._end = due, positions
        return course.extended(times, joints, now)

    def _check_speed(self, positions: Joints, due: float) -> None:
        seconds = due - self._time
        for number, (of, to) in enumerate(zip(self._end, positions, strict=True), 1):
            if abs(to - of) > self.speed * seconds + _ROUNDING:
                raise InvalidRequest(
                    f"joint {number} cannot go from {of:g} to {to:g} within {seconds:g} seconds: "
                    f"it makes {self.speed:g} in one second at most"
                )


def _check_start(here: Joints, positions: Joints) -> None:
    for number, (at, wanted) in enumerate(zip(here, positions, strict=True), 1):
        if abs(at - wanted) > _APART:
            raise InvalidRequest(
                f"the trajectory begins with joint {number} at {wanted:g}, where it is not: "
                f"it is at {at:g}; begin there, or move the arm there first"
            )


def room(course: Course, now: float) -> float:
    """How many seconds it takes until there is room for more points."""
    if len(course.times) <= AHEAD:
        return 0.0
    return max(course.since + course.times[-AHEAD] - now, 0.0)
