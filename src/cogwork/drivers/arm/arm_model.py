"""The kinematic model of an arm, in the units of the public API: degrees and millimeters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from viam.proto.common import Geometry

from cogwork.core.errors import CogworkError
from cogwork.drivers.arm.desk_arm import desk_arm
from cogwork.drivers.joint_trajectory import Joints
from cogwork.resource.messages.pose_proto import geometry_to_proto, pose_from_proto, pose_to_proto
from cogwork.spatial.kinematics import (
    Chain,
    Joint,
    JointType,
    Link,
    format_sva,
    parse_sva,
    parse_urdf,
)
from cogwork.spatial.pose import Pose, Vector

_MAX_FILE_BYTES = 10_000_000
_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class BadArmModel(CogworkError):
    """A file does not describe an arm, or the given joints do not fit the arm."""

    status = "FAILED_PRECONDITION"


class ArmModel:
    def __init__(self, chain: Chain, sva: bytes) -> None:
        """`sva` is the kinematics file in SVA form, which is sent to clients."""
        self.chain = chain
        self.sva = sva
        self._is_revolute = tuple(joint.is_rotary for joint in chain.joints)
        lowest, highest = (self.to_joints(ends) for ends in zip(*chain.limits, strict=True))
        self._limits = tuple(zip(lowest, highest, strict=True))

    @classmethod
    def desk_arm(cls) -> ArmModel:
        chain = desk_arm()
        return cls(chain, format_sva(chain).encode())

    @classmethod
    def load(cls, path: str) -> ArmModel:
        """Load a kinematics file. This call blocks."""
        try:
            return cls._parse(_read_file(path))
        except (OSError, ValueError) as error:
            raise BadArmModel(f"{path} does not describe an arm: {error}") from error

    @classmethod
    def _parse(cls, data: bytes) -> ArmModel:
        text = data.decode("utf-8-sig")
        if text.lstrip().startswith("<"):
            # Convert URDF to SVA, which clients can read and in which every joint has limits.
            text = format_sva(_replace_cylinders(parse_urdf(text)))
            data = text.encode()
        chain = parse_sva(text)
        if not chain.joints:
            raise ValueError("it has no movable joint")
        model = cls(chain, data)
        model.geometries(model.start_joints(None))
        return model

    def start_joints(self, joints: Sequence[float] | None) -> Joints:
        """Return the configured initial joint positions, or by default the positions closest to
        0."""
        if joints is None:
            return self.to_joints([min(max(0.0, low), high) for low, high in self.chain.limits])
        try:
            return self.check_joints(joints)
        except ValueError as error:
            raise BadArmModel(f'"joints" does not fit the arm: {error}') from None

    def check_joints(self, joints: Sequence[float]) -> Joints:
        """Return the joint positions. Raise ValueError if their number is wrong or a limit is
        exceeded."""
        values = tuple(joints)
        # This method is called for many points, so check quickly. Call the slower `check_inputs`
        # only to explain why a point is invalid.
        if not self._is_within_limits(values):
            self.chain.check_inputs(self.to_inputs(values))
        return values

    def pose(self, joints: Sequence[float]) -> Pose:
        return self.chain.pose(self.to_inputs(joints))

    def tool_position(self, joints: Sequence[float]) -> Vector:
        return self.pose(joints).point

    def geometries(self, joints: Sequence[float]) -> list[Geometry]:
        """Return the geometries of the links at these joint positions."""
        ends = self.chain.poses(self.to_inputs(joints))
        return [_place_geometry(link, ends[link.id]) for link in self.chain.links if link.geometry]

    def to_inputs(self, joints: Sequence[float]) -> list[float]:
        """Convert joint positions to the inputs of the chain, which are in radians."""
        return self._convert(joints, math.radians)

    def to_joints(self, inputs: Sequence[float]) -> Joints:
        """Convert inputs of the chain to joint positions."""
        return tuple(self._convert(inputs, math.degrees))

    def max_reach(self) -> float:
        """Return an upper bound of the distance between the base and the end of the arm, in
        millimeters."""
        links = math.fsum(math.hypot(*link.pose.point) for link in self.chain.links)
        strokes = (
            max(map(abs, joint.limits)) for joint in self.chain.joints if not joint.is_rotary
        )
        return links + math.fsum(strokes)

    def with_free_orientation(self) -> Chain:
        """Return the chain with three more joints at its end, which let the end rotate freely."""
        free_axes = (Joint(f"loose_{axis}", "", JointType.CONTINUOUS, axis) for axis in _AXES)
        return Chain(self.chain.name, (*self.chain.elements, *free_axes))

    def _convert(self, values: Sequence[float], convert: Callable[[float], float]) -> list[float]:
        each = zip(values, self._is_revolute, strict=False)
        converted = [convert(value) if is_revolute else value for value, is_revolute in each]
        # Keep surplus values, so that the chain rejects them.
        return [*converted, *values[len(converted) :]]

    def _is_within_limits(self, values: Joints) -> bool:
        return len(values) == len(self._limits) and all(
            low <= value <= high and math.isfinite(value)
            for value, (low, high) in zip(values, self._limits, strict=True)
        )


def _read_file(path: str) -> bytes:
    with Path(path).open("rb") as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {_MAX_FILE_BYTES} bytes")
    return data


def _replace_cylinders(chain: Chain) -> Chain:
    """Replace cylinders by the capsules that enclose them: the API has no cylinders."""
    elements = (
        _as_capsule(element) if isinstance(element, Link) else element for element in chain.elements
    )
    return Chain(chain.name, tuple(elements))


def _as_capsule(link: Link) -> Link:
    shape = link.geometry or {}
    match shape:
        case {"type": "cylinder", "r": float(radius), "l": float(length)}:
            capsule = {**shape, "type": "capsule", "l": length + 2 * radius}
            return replace(link, geometry=capsule)
    return link


def _place_geometry(link: Link, end: Pose) -> Geometry:
    """Return the geometry of a link, relative to the start of the link."""
    assert link.geometry is not None
    shape = geometry_to_proto(link.geometry, link.id)
    start = end.compose(link.pose.inverse())
    shape.center.CopyFrom(pose_to_proto(start.compose(pose_from_proto(shape.center))))
    return shape
