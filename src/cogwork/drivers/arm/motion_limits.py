"""Speed limits of an arm, from its configuration and from a call."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viam.proto.component.arm import MoveOptions

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.joint_trajectory import Joints, TrajectorySegment
from cogwork.spatial.pose import Vector

ToolPosition = Callable[[Joints], Vector]
"""A function that returns the position of the arm's end, in millimeters."""

_PATH_SAMPLES = 32
"""Number of pieces into which a segment is divided to measure the speed of the arm's end."""


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Limits per second: in degrees for revolute joints, in millimeters for prismatic joints."""

    speeds: Joints
    accelerations: Joints
    """Maximum acceleration of each joint; infinite for a constant speed without ramps."""
    tool_speed: float = math.inf
    """Maximum speed of the arm's end in millimeters per second; infinite if there is no limit."""

    @property
    def limits_tool_speed(self) -> bool:
        """Whether the speed of the arm's end is limited."""
        return math.isfinite(self.tool_speed)

    @classmethod
    def from_options(
        cls, options: MoveOptions | None, arm_speed: float, joints: int
    ) -> MotionLimits:
        """Combine the limits of a call with the joint speed of the arm, which no call can raise."""
        options = options or MoveOptions()
        speeds = _read_joint_options(options, "max_vel_degs_per_sec", joints)
        return cls(
            tuple(min(arm_speed, speed) for speed in speeds),
            _read_joint_options(options, "max_acc_degs_per_sec2", joints),
            1000 * _read_option(options, "max_tcp_speed"),
        )

    def plan_segments(
        self, start: Joints, points: Sequence[Joints], tool: ToolPosition
    ) -> list[TrajectorySegment]:
        """Plan the fastest segments on which all joints arrive at each point together."""
        return [self._plan_segment(*ends, tool) for ends in itertools.pairwise([start, *points])]

    def _plan_segment(self, start: Joints, end: Joints, tool: ToolPosition) -> TrajectorySegment:
        changes = [abs(to - of) for of, to in zip(start, end, strict=True)]
        if not any(changes):
            return TrajectorySegment(end, 0.0)
        # `speed` is in segments per second, `acceleration` in segments per second squared.
        speed = min(_max_rate(self.speeds, changes), self._max_tool_rate(start, end, tool))
        acceleration = _max_rate(self.accelerations, changes)
        ramp = speed / acceleration
        if ramp * speed < 1:
            return TrajectorySegment(end, 1 / speed + ramp, ramp)
        # The segment is too short to reach full speed: accelerate for half of it, then decelerate.
        return TrajectorySegment(end, 2 / math.sqrt(acceleration), 1 / math.sqrt(acceleration))

    def _max_tool_rate(self, start: Joints, end: Joints, tool: ToolPosition) -> float:
        if not self.limits_tool_speed:
            return math.inf
        fractions = [number / _PATH_SAMPLES for number in range(_PATH_SAMPLES + 1)]
        positions = [
            tool(tuple(of + (to - of) * fraction for of, to in zip(start, end, strict=True)))
            for fraction in fractions
        ]
        longest = max(math.dist(*pair) for pair in itertools.pairwise(positions)) * _PATH_SAMPLES
        return self.tool_speed / longest if longest else math.inf


def _max_rate(limits: Joints, changes: Sequence[float]) -> float:
    return min(limit / change for limit, change in zip(limits, changes, strict=True) if change)


def _read_joint_options(options: MoveOptions, name: str, joints: int) -> Joints:
    """Return the limits of each joint; values for single joints override the value for all."""
    values = tuple(getattr(options, f"{name}_joints"))
    if not values:
        return (_read_option(options, name),) * joints
    if len(values) != joints:
        raise InvalidRequest(
            f"{name}_joints has {len(values)} values: give one for each of the {joints} joints"
        )
    return tuple(_check_limit(f"{name}_joints", value) for value in values)


def _read_option(options: MoveOptions, name: str) -> float:
    """Return the value, or infinity if the field is not set."""
    if not options.HasField(name):  # type: ignore[arg-type]
        return math.inf
    return _check_limit(name, getattr(options, name))


def _check_limit(name: str, value: float) -> float:
    """Return the limit, or infinity for 0: Go clients send 0 if there is no limit."""
    if not 0 <= value < math.inf:
        raise InvalidRequest(f"{name} is {value:g}: give a number above 0, or omit it for no limit")
    return value or math.inf
