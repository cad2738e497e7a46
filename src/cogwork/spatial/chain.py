"""Serial kinematic chains of links and joints, and their forward kinematics."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from cogwork.spatial.pose import ZERO, Pose, Quaternion, Vector, unit_vector

WORLD = "world"

# Tolerance of limits: converting inputs to degrees and back on the wire rounds them.
_LIMIT_TOLERANCE = 1e-6


_MAX_MESSAGE = 1000
"""Maximum characters of an error message, because it may quote long texts of a file."""


class BadKinematics(ValueError):
    """A description is not a serial chain, or the inputs do not fit the chain."""

    def __init__(self, message: str) -> None:
        shown = message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]}…"
        super().__init__(shown)


class JointType(StrEnum):
    REVOLUTE = "revolute"
    """Rotates about its axis, between limits."""
    CONTINUOUS = "continuous"
    """Rotates about its axis without limits."""
    PRISMATIC = "prismatic"
    """Slides along its axis, between limits."""
    FIXED = "fixed"
    """Does not move."""


class JointLimits(NamedTuple):
    """The range of a joint: radians for a rotary joint, millimeters for a prismatic one."""

    minimum: float
    maximum: float


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint between two links of a chain."""

    id: str
    parent: str
    kind: JointType = JointType.REVOLUTE
    axis: Vector = (0.0, 0.0, 1.0)
    minimum: float = -math.inf
    maximum: float = math.inf

    @property
    def is_movable(self) -> bool:
        return self.kind != JointType.FIXED

    @property
    def is_rotary(self) -> bool:
        return self.kind in (JointType.REVOLUTE, JointType.CONTINUOUS)

    @property
    def limits(self) -> JointLimits:
        if self.kind == JointType.CONTINUOUS:
            return JointLimits(-math.inf, math.inf)
        return JointLimits(self.minimum, self.maximum)

    def pose(self, value: float) -> Pose:
        """Return the transform of the joint at a position in radians or millimeters."""
        if self.is_rotary:
            return Pose(ZERO, Quaternion.from_axis_angle(self.axis, value))
        if self.kind == JointType.PRISMATIC:
            x, y, z = unit_vector(self.axis)
            return Pose((x * value, y * value, z * value), Quaternion.identity())
        return Pose.identity()


@dataclass(frozen=True, slots=True)
class Link:
    """A rigid part of a chain; its pose leads from the end of its parent to its own end."""

    id: str
    parent: str
    pose: Pose = field(default_factory=Pose.identity)
    geometry: Mapping[str, object] | None = field(default=None, hash=False)
    """The geometry of the link, as in the kinematics file."""


ChainElement = Link | Joint


@dataclass(frozen=True, slots=True)
class Chain:
    """A sequence of links and joints, each the parent of the next."""

    name: str
    elements: tuple[ChainElement, ...]

    @classmethod
    def from_elements(cls, name: str, elements: Iterable[ChainElement]) -> Chain:
        """Build a chain from elements in any order.

        Raise BadKinematics if the elements do not form a single chain.
        """
        return cls(name, tuple(_order_elements(name, list(elements))))

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The movable joints, from the base to the end. Each takes one input."""
        return tuple(
            element
            for element in self.elements
            if isinstance(element, Joint) and element.is_movable
        )

    @property
    def links(self) -> tuple[Link, ...]:
        return tuple(element for element in self.elements if isinstance(element, Link))

    @property
    def limits(self) -> tuple[JointLimits, ...]:
        return tuple(joint.limits for joint in self.joints)

    def pose(self, inputs: Sequence[float]) -> Pose:
        """Return the pose of the end relative to the base (forward kinematics).

        Inputs are in radians and millimeters; their limits are not checked.
        """
        return self._forward_kinematics(inputs)[-1][1]

    def poses(self, inputs: Sequence[float]) -> dict[str, Pose]:
        """Return the pose of the end of each link relative to the base of the chain."""
        return {
            element.id: pose
            for element, pose in self._forward_kinematics(inputs)
            if isinstance(element, Link)
        }

    def check_inputs(self, inputs: Sequence[float]) -> None:
        """Raise BadKinematics if the number of inputs is wrong or an input exceeds a limit."""
        self._check_count(inputs)
        for joint, value in zip(self.joints, inputs, strict=True):
            low, high = joint.limits
            if not (
                low - _LIMIT_TOLERANCE <= value <= high + _LIMIT_TOLERANCE and math.isfinite(value)
            ):
                raise BadKinematics(
                    f'joint "{joint.id}" of "{self.name}" cannot move to '
                    f"{_format_value(joint, value)}; its limits are "
                    f"{_format_value(joint, low)} to {_format_value(joint, high)}"
                )

    def _forward_kinematics(self, inputs: Sequence[float]) -> list[tuple[ChainElement, Pose]]:
        self._check_count(inputs)
        values = iter(inputs)
        poses: list[tuple[ChainElement, Pose]] = []
        pose = Pose.identity()
        for element in self.elements:
            if isinstance(element, Link):
                pose = pose.compose(element.pose)
            elif element.is_movable:
                pose = pose.compose(element.pose(next(values)))
            poses.append((element, pose))
        return poses

    def _check_count(self, inputs: Sequence[float]) -> None:
        if len(inputs) != len(self.joints):
            raise BadKinematics(
                f'"{self.name}" takes {len(self.joints)} joint positions, not {len(inputs)}'
            )


def gantry_chain(
    axes: Sequence[float], directions: Sequence[Vector] | None = None, name: str = "gantry"
) -> Chain:
    """Build a chain of prismatic axes that move from 0 to their lengths in millimeters.

    The default directions are x, y and z.
    """
    if directions is None:
        directions = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))[: len(axes)]
    if not axes or len(axes) != len(directions):
        raise BadKinematics(
            f'"{name}" has {len(axes)} lengths and {len(directions)} directions; '
            "each axis needs one of each"
        )
    parents = (WORLD, *(f"axis_{number}" for number in range(1, len(axes))))
    return Chain.from_elements(
        name,
        [
            Joint(
                f"axis_{number}",
                parent,
                JointType.PRISMATIC,
                unit_vector(direction),
                0.0,
                _check_length(length),
            )
            for number, (parent, length, direction) in enumerate(
                zip(parents, axes, directions, strict=True), 1
            )
        ],
    )


def _check_length(length_mm: float) -> float:
    if not 0 <= length_mm < math.inf:
        raise BadKinematics(f"an axis cannot be {length_mm:g} mm long")
    return float(length_mm)


def _order_elements(name: str, elements: list[ChainElement]) -> Iterable[ChainElement]:
    """Return the elements from the base to the end. Raise BadKinematics if they do not form a
    chain."""
    known = _collect_ids(name, elements)
    after: dict[str, ChainElement] = {}
    for element in elements:
        if element.parent in after:
            raise BadKinematics(
                f'"{name}" branches: "{after[element.parent].id}" and "{element.id}" '
                f'have the same parent "{element.parent}", but a chain has only one end'
            )
        if element.parent not in known and element.parent != WORLD:
            raise BadKinematics(
                f'the parent "{element.parent}" of "{element.id}" in "{name}" does not exist; '
                f"the first part of a chain has the parent {WORLD}"
            )
        after[element.parent] = element
    ordered: list[ChainElement] = []
    while (following := after.pop(ordered[-1].id if ordered else WORLD, None)) is not None:
        ordered.append(following)
    if after:
        rest = ", ".join(sorted(f'"{element.id}"' for element in after.values()))
        raise BadKinematics(f'"{name}" has a cycle, so these parts do not lead to {WORLD}: {rest}')
    return ordered


def _collect_ids(name: str, elements: list[ChainElement]) -> set[str]:
    if not elements:
        raise BadKinematics(f'"{name}" has neither links nor joints')
    ids: set[str] = set()
    for element in elements:
        if element.id == WORLD or not element.id:
            raise BadKinematics(
                f'"{element.id}" is not a valid name for a part of "{name}"; choose another'
            )
        if element.id in ids:
            raise BadKinematics(
                f'"{name}" has two parts called "{element.id}"; each needs its own name'
            )
        ids.add(element.id)
    return ids


def _format_value(joint: Joint, value: float) -> str:
    return f"{math.degrees(value):.6g} degrees" if joint.is_rotary else f"{value:.6g} mm"
