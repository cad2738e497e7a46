"""An arm as a description has it, in the units of the public API: degrees, and millimetres."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from viam.proto.common import Geometry

from cogwork.core.errors import CogworkError
from cogwork.drivers.arm.desk_arm import desk_arm
from cogwork.drivers.course import Joints
from cogwork.resource.poses import from_message, shape_of, to_message
from cogwork.spatial.kinematics import (
    Chain,
    Joint,
    Kind,
    Link,
    read_sva,
    read_urdf,
    write_sva,
)
from cogwork.spatial.pose import Pose, Vector

_LARGEST_FILE = 10_000_000
_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class BadDescription(CogworkError):
    """A file that describes no arm, or joints that the arm described does not have."""

    status = "FAILED_PRECONDITION"


class Described:
    def __init__(self, chain: Chain, sva: bytes) -> None:
        """`sva`: the same, as others read it."""
        self.chain = chain
        self.sva = sva
        self._turning = tuple(joint.turns for joint in chain.joints)
        lowest, highest = (self.joints(ends) for ends in zip(*chain.limits, strict=True))
        self._limits = tuple(zip(lowest, highest, strict=True))

    @classmethod
    def desk_arm(cls) -> Described:
        chain = desk_arm()
        return cls(chain, write_sva(chain).encode())

    @classmethod
    def read(cls, path: str) -> Described:
        """Blocks."""
        try:
            return cls._of(_bytes(path))
        except (OSError, ValueError) as error:
            raise BadDescription(f"{path} does not describe an arm: {error}") from error

    @classmethod
    def _of(cls, data: bytes) -> Described:
        text = data.decode("utf-8-sig")
        if text.lstrip().startswith("<"):
            # It keeps to what others read, who know no joint without limits.
            text = write_sva(_rounded(read_urdf(text)))
            data = text.encode()
        chain = read_sva(text)
        if not chain.joints:
            raise ValueError("none of its joints moves")
        described = cls(chain, data)
        described.geometries(described.start(None))
        return described

    def start(self, wanted: Sequence[float] | None) -> Joints:
        """The joints as they are wanted; or as near to 0 as they go."""
        if wanted is None:
            return self.joints([min(max(0.0, low), high) for low, high in self.chain.limits])
        try:
            return self.checked(wanted)
        except ValueError as error:
            raise BadDescription(f'"joints" does not fit: {error}') from None

    def checked(self, joints: Sequence[float]) -> Joints:
        """ValueError if it has no such joints, or not so far."""
        values = tuple(joints)
        # Many come at once: words are only made for those that may be wrong.
        if not self._within_limits(values):
            self.chain.check(self.inputs(values))
        return values

    def pose(self, joints: Sequence[float]) -> Pose:
        return self.chain.pose(self.inputs(joints))

    def tool(self, joints: Sequence[float]) -> Vector:
        return self.pose(joints).point

    def geometries(self, joints: Sequence[float]) -> list[Geometry]:
        """What its links take up, where they are with these joints."""
        ends = self.chain.poses(self.inputs(joints))
        return [_placed(link, ends[link.id]) for link in self.chain.links if link.geometry]

    def inputs(self, joints: Sequence[float]) -> list[float]:
        """As the chain takes them: in radians."""
        return self._converted(joints, math.radians)

    def joints(self, inputs: Sequence[float]) -> Joints:
        """From what the chain takes."""
        return tuple(self._converted(inputs, math.degrees))

    def reach(self) -> float:
        """No point of it gets further from its base than so many millimetres."""
        links = math.fsum(math.hypot(*link.pose.point) for link in self.chain.links)
        slides = (max(map(abs, joint.limits)) for joint in self.chain.joints if not joint.turns)
        return links + math.fsum(slides)

    def with_loose_end(self) -> Chain:
        """The same arm if its end could be turned in any way. It takes three inputs more."""
        loose = (Joint(f"loose_{axis}", "", Kind.CONTINUOUS, axis) for axis in _AXES)
        return Chain(self.chain.name, (*self.chain.steps, *loose))

    def _converted(self, values: Sequence[float], convert: Callable[[float], float]) -> list[float]:
        each = zip(values, self._turning, strict=False)
        changed = [convert(value) if turns else value for value, turns in each]
        # One too many is for the chain to refuse.
        return [*changed, *values[len(changed) :]]

    def _within_limits(self, values: Joints) -> bool:
        return len(values) == len(self._limits) and all(
            low <= value <= high and math.isfinite(value)
            for value, (low, high) in zip(values, self._limits, strict=True)
        )


def _bytes(path: str) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(_LARGEST_FILE + 1)
    if len(data) > _LARGEST_FILE:
        raise ValueError(f"it is larger than {_LARGEST_FILE} bytes")
    return data


def _rounded(chain: Chain) -> Chain:
    """Its cylinders as the capsules that have room for them: the API has no cylinders."""
    steps = (_as_capsule(step) if isinstance(step, Link) else step for step in chain.steps)
    return Chain(chain.name, tuple(steps))


def _as_capsule(link: Link) -> Link:
    shape = link.geometry or {}
    match shape:
        case {"type": "cylinder", "r": float(radius), "l": float(length)}:
            capsule = {**shape, "type": "capsule", "l": length + 2 * radius}
            return replace(link, geometry=capsule)
    return link


def _placed(link: Link, end: Pose) -> Geometry:
    """A link's shape is seen from where the link begins."""
    assert link.geometry is not None
    shape = shape_of(link.geometry, link.id)
    begin = end.then(link.pose.inverse())
    shape.center.CopyFrom(to_message(begin.then(from_message(shape.center))))
    return shape
