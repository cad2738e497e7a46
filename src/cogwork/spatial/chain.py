"""Serial chains of links and joints: where the end of an arm or a gantry is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from cogwork.spatial.pose import ZERO, Pose, Quaternion, Vector, unit

WORLD = "world"

# Inputs go through degrees and back on the wire: rounding must not break a limit.
_SLACK = 1e-6


class BadKinematics(ValueError):
    """A description that is no serial chain, or inputs that a chain does not take."""


class Kind(StrEnum):
    """How a joint moves."""

    REVOLUTE = "revolute"
    """It turns about its axis, between limits."""
    CONTINUOUS = "continuous"
    """It turns about its axis as often as it likes."""
    PRISMATIC = "prismatic"
    """It slides along its axis, between limits."""
    FIXED = "fixed"
    """It does not move."""


class Limits(NamedTuple):
    """How far a joint goes: radians when it turns, millimetres when it slides."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Joint:
    """Where the next part of a chain turns or slides against the one before."""

    id: str
    parent: str
    kind: Kind = Kind.REVOLUTE
    axis: Vector = (0.0, 0.0, 1.0)
    minimum: float = -math.inf
    maximum: float = math.inf

    @property
    def moves(self) -> bool:
        return self.kind != Kind.FIXED

    @property
    def turns(self) -> bool:
        return self.kind in (Kind.REVOLUTE, Kind.CONTINUOUS)

    @property
    def limits(self) -> Limits:
        if self.kind == Kind.CONTINUOUS:
            return Limits(-math.inf, math.inf)
        return Limits(self.minimum, self.maximum)

    def pose(self, value: float) -> Pose:
        """What it does to all that follows. The value is in radians or millimetres."""
        if self.turns:
            return Pose(ZERO, Quaternion.about(self.axis, value))
        if self.kind == Kind.PRISMATIC:
            x, y, z = unit(self.axis)
            return Pose((x * value, y * value, z * value), Quaternion.identity())
        return Pose.zero()


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid part of a chain: how to get from its parent to its own end."""

    id: str
    parent: str
    pose: Pose = field(default_factory=Pose.zero)
    geometry: Mapping[str, object] | None = field(default=None, hash=False)
    """The space it takes up, as its description writes it."""


Step = Link | Joint


@dataclass(frozen=True, slots=True)
class Chain:
    """Links and joints in a row, each the parent of the next."""

    name: str
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, name: str, steps: Iterable[Step]) -> Chain:
        """A chain from steps in any order. ValueError says why they are not one chain."""
        return cls(name, tuple(_in_a_row(name, list(steps))))

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Those that move, from the base to the end. Each takes one input."""
        return tuple(step for step in self.steps if isinstance(step, Joint) and step.moves)

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(step for step in self.steps if isinstance(step, Link))

    @property
    def limits(self) -> tuple[Limits, ...]:
        return tuple(joint.limits for joint in self.joints)

    def pose(self, inputs: Sequence[float]) -> Pose:
        """Where its end is, seen from its base: radians and millimetres in, no limits checked."""
        return self._walk(inputs)[-1][1]

    def poses(self, inputs: Sequence[float]) -> dict[str, Pose]:
        """Where the end of each link is, seen from the base of the chain."""
        return {step.id: pose for step, pose in self._walk(inputs) if isinstance(step, Link)}

    def check(self, inputs: Sequence[float]) -> None:
        """ValueError if there are too many inputs, too few, or one beyond the limits."""
        self._check_count(inputs)
        for joint, value in zip(self.joints, inputs, strict=True):
            low, high = joint.limits
            if not (low - _SLACK <= value <= high + _SLACK and math.isfinite(value)):
                raise BadKinematics(
                    f'joint "{joint.id}" of "{self.name}" cannot go to {_shown(joint, value)}; '
                    f"it goes from {_shown(joint, low)} to {_shown(joint, high)}"
                )

    def _walk(self, inputs: Sequence[float]) -> list[tuple[Step, Pose]]:
        self._check_count(inputs)
        values = iter(inputs)
        walked: list[tuple[Step, Pose]] = []
        pose = Pose.zero()
        for step in self.steps:
            if isinstance(step, Link):
                pose = pose.then(step.pose)
            elif step.moves:
                pose = pose.then(step.pose(next(values)))
            walked.append((step, pose))
        return walked

    def _check_count(self, inputs: Sequence[float]) -> None:
        if len(inputs) != len(self.joints):
            raise BadKinematics(
                f'"{self.name}" takes {len(self.joints)} joint positions, not {len(inputs)}'
            )


def gantry_chain(
    axes: Sequence[float], directions: Sequence[Vector] | None = None, name: str = "gantry"
) -> Chain:
    """Axes that slide from 0 to their lengths in millimetres, along x, y and z unless told."""
    if directions is None:
        directions = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[: len(axes)]
    if not axes or len(axes) != len(directions):
        raise BadKinematics(
            f'"{name}" has {len(axes)} lengths and {len(directions)} directions; '
            "each axis needs one of both"
        )
    parents = (WORLD, *(f"axis_{number}" for number in range(1, len(axes))))
    return Chain.of(
        name,
        [
            Joint(f"axis_{number}", parent, Kind.PRISMATIC, unit(direction), 0.0, _length(length))
            for number, (parent, length, direction) in enumerate(
                zip(parents, axes, directions, strict=True), 1
            )
        ],
    )


def _length(millimetres: float) -> float:
    if not 0 <= millimetres < math.inf:
        raise BadKinematics(f"an axis cannot be {millimetres:g} mm long")
    return float(millimetres)


def _in_a_row(name: str, steps: list[Step]) -> Iterable[Step]:
    """The steps from the base to the end, or the reason why there is no such order."""
    known = _ids(name, steps)
    after: dict[str, Step] = {}
    for step in steps:
        if step.parent in after:
            raise BadKinematics(
                f'"{name}" branches: both "{after[step.parent].id}" and "{step.id}" '
                f'follow "{step.parent}", and a chain has one end'
            )
        if step.parent not in known and step.parent != WORLD:
            raise BadKinematics(
                f'"{step.id}" of "{name}" follows "{step.parent}", which is not there; '
                f"the first part of a chain follows {WORLD}"
            )
        after[step.parent] = step
    row: list[Step] = []
    while (following := after.pop(row[-1].id if row else WORLD, None)) is not None:
        row.append(following)
    if after:
        rest = ", ".join(sorted(f'"{step.id}"' for step in after.values()))
        raise BadKinematics(f'{rest} of "{name}" run in a circle and never reach {WORLD}')
    return row


def _ids(name: str, steps: list[Step]) -> set[str]:
    if not steps:
        raise BadKinematics(f'"{name}" has neither links nor joints')
    ids: set[str] = set()
    for step in steps:
        if step.id == WORLD or not step.id:
            raise BadKinematics(f'"{step.id}" is no name for a part of "{name}"; choose another')
        if step.id in ids:
            raise BadKinematics(
                f'"{name}" has two parts called "{step.id}"; each needs its own name'
            )
        ids.add(step.id)
    return ids


def _shown(joint: Joint, value: float) -> str:
    return f"{math.degrees(value):.6g} degrees" if joint.turns else f"{value:.6g} mm"
