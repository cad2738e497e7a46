"""An arm trajectory to which a client appends batches of timed joint positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viam.components.arm import Arm

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.joint_trajectory import Joints, JointTrajectory

MAX_POINTS_AHEAD = 10_000
"""Maximum number of points ahead of the arm. Further batches wait until there is room."""
_START_TOLERANCE = 1.0
"""Degrees or millimeters by which the first point may differ from the current position."""
_ROUNDING = 1e-6


@dataclass(slots=True)
class StreamedTrajectory:
    check: Callable[[Sequence[float]], Joints]
    """A function that raises InvalidRequest for positions that the joints cannot reach."""
    speed: float
    """Maximum speed of each joint."""
    _last_time: float = math.nan
    _last_joints: Joints = ()
    """Joint positions at the newest point, which the arm should reach at `_last_time`."""

    def extend(
        self, trajectory: JointTrajectory, points: Sequence[Arm.TrajectoryPoint], now: float
    ) -> JointTrajectory:
        """Return the trajectory with the points appended; one invalid point rejects the whole
        batch."""
        times, joints = [], []
        for point in points:
            due, positions = point.time.total_seconds(), self.check(point.positions)
            if self._last_joints:
                self._check_speed(positions, due)
                times.append(due)
                joints.append(positions)
            else:
                _check_start(trajectory.end, positions)
            self._last_time, self._last_joints = due, positions
        return trajectory.append_points(times, joints, now)

    def _check_speed(self, positions: Joints, due: float) -> None:
        seconds = due - self._last_time
        for number, (of, to) in enumerate(zip(self._last_joints, positions, strict=True), 1):
            if abs(to - of) > self.speed * seconds + _ROUNDING:
                raise InvalidRequest(
                    f"joint {number} cannot go from {of:g} to {to:g} within {seconds:g} seconds: "
                    f"its maximum speed is {self.speed:g} per second"
                )


def _check_start(joints: Joints, positions: Joints) -> None:
    for number, (current, target) in enumerate(zip(joints, positions, strict=True), 1):
        if abs(current - target) > _START_TOLERANCE:
            raise InvalidRequest(
                f"the trajectory starts with joint {number} at {target:g}, "
                f"but the joint is at {current:g}; start there, or move the arm there first"
            )


def seconds_until_room(trajectory: JointTrajectory, now: float) -> float:
    """Return the seconds until there is room for more points."""
    if len(trajectory.times) <= MAX_POINTS_AHEAD:
        return 0.0
    return max(trajectory.since + trajectory.times[-MAX_POINTS_AHEAD] - now, 0.0)
