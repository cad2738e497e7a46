"""How fast an arm may go: what its joints can do, and what a call asks for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from viam.proto.component.arm import MoveOptions

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.course import Joints, Leg
from cogwork.spatial.pose import Vector

Tool = Callable[[Joints], Vector]
"""Where the end of the arm is, in millimetres."""

_SAMPLES = 32
"""In how many pieces the way of the tool is measured."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Degrees for joints that turn, millimetres for those that slide, seconds."""

    speeds: Joints
    accelerations: Joints
    """Infinite: it is at its speed at once."""
    tool_speed: float = math.inf
    """Millimetres per second. Infinite: whatever the joints make of it."""

    @property
    def takes_a_while(self) -> bool:
        """The way of the tool has to be measured."""
        return math.isfinite(self.tool_speed)

    @classmethod
    def asked(cls, options: MoveOptions | None, own: float, joints: int) -> Pace:
        """No joint goes faster than the arm's own speed."""
        options = options or MoveOptions()
        wanted = _each(options, "max_vel_degs_per_sec", joints)
        return cls(
            tuple(min(own, speed) for speed in wanted),
            _each(options, "max_acc_degs_per_sec2", joints),
            1000 * _one(options, "max_tcp_speed"),
        )

    def legs(self, start: Joints, points: Sequence[Joints], tool: Tool) -> list[Leg]:
        """All joints arrive at each point together, as soon as the pace lets them."""
        return [self._leg(*ends, tool) for ends in itertools.pairwise([start, *points])]

    def _leg(self, start: Joints, end: Joints, tool: Tool) -> Leg:
        changes = [abs(to - of) for of, to in zip(start, end, strict=True)]
        if not any(changes):
            return Leg(end, 0.0)
        # Both count legs: how many of them it would make in a second, once it is at speed.
        speed = min(_most(self.speeds, changes), self._by_tool(start, end, tool))
        acceleration = _most(self.accelerations, changes)
        ramp = speed / acceleration
        if ramp * speed < 1:
            return Leg(end, 1 / speed + ramp, ramp)
        # It has to slow down again before it is at speed.
        return Leg(end, 2 / math.sqrt(acceleration), 1 / math.sqrt(acceleration))

    def _by_tool(self, start: Joints, end: Joints, tool: Tool) -> float:
        if not self.takes_a_while:
            return math.inf
        shares = [number / _SAMPLES for number in range(_SAMPLES + 1)]
        places = [
            tool(tuple(of + (to - of) * share for of, to in zip(start, end, strict=True)))
            for share in shares
        ]
        longest = max(math.dist(*pair) for pair in itertools.pairwise(places)) * _SAMPLES
        return self.tool_speed / longest if longest else math.inf


def _most(limits: Joints, changes: Sequence[float]) -> float:
    return min(limit / change for limit, change in zip(limits, changes, strict=True) if change)


def _each(options: MoveOptions, name: str, joints: int) -> Joints:
    """What is asked of every joint by itself goes before what is asked of all of them."""
    values = tuple(getattr(options, f"{name}_joints"))
    if not values:
        return (_one(options, name),) * joints
    if len(values) != joints:
        raise InvalidRequest(
            f"{name}_joints has {len(values)} values: give one for each of the {joints} joints"
        )
    for value in values:
        _check(f"{name}_joints", value)
    return values


def _one(options: MoveOptions, name: str) -> float:
    """A field that is not set asks for nothing; it does not ask to stand still."""
    if not options.HasField(name):  # type: ignore[arg-type]
        return math.inf
    value: float = getattr(options, name)
    _check(name, value)
    return value


def _check(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidRequest(
            f"{name} is {value:g}: give a number above 0, or leave it out for no such limit"
        )
