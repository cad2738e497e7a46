"""Poses (position and orientation), and their composition."""

from __future__ import annotations

import math
from dataclasses import dataclass

Vector = tuple[float, float, float]
"""Millimeters along x, y and z; or a direction."""

ZERO: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Quaternion:
    """A rotation as a unit quaternion; `normalized` scales it to length one."""

    w: float
    x: float
    y: float
    z: float

    @classmethod
    def identity(cls) -> Quaternion:
        return cls(1.0, 0.0, 0.0, 0.0)

    @classmethod
    def from_axis_angle(cls, axis: Vector, angle: float) -> Quaternion:
        """Return a right-handed rotation about an axis by an angle in radians."""
        x, y, z = unit_vector(axis)
        sine = math.sin(angle / 2)
        return cls(math.cos(angle / 2), x * sine, y * sine, z * sine)

    def normalized(self) -> Quaternion:
        """Return the same rotation with length one. Raise ValueError if all parts are zero."""
        largest = max(abs(self.w), abs(self.x), abs(self.y), abs(self.z))
        if not 0 < largest < math.inf:
            raise ValueError(
                "w, x, y and z of a quaternion must be finite, and at least one of them not zero"
            )
        # Scale first: otherwise the squares of very small or large numbers underflow or overflow.
        w, x, y, z = self.w / largest, self.x / largest, self.y / largest, self.z / largest
        length = math.sqrt(w * w + x * x + y * y + z * z)
        return Quaternion(w / length, x / length, y / length, z / length)

    def inverse(self) -> Quaternion:
        return Quaternion(self.w, -self.x, -self.y, -self.z)

    def rotate(self, vector: Vector) -> Vector:
        x, y, z = vector
        # u is twice the cross product of the quaternion's vector part and the vector.
        ux = 2 * (self.y * z - self.z * y)
        uy = 2 * (self.z * x - self.x * z)
        uz = 2 * (self.x * y - self.y * x)
        return (
            x + self.w * ux + self.y * uz - self.z * uy,
            y + self.w * uy + self.z * ux - self.x * uz,
            z + self.w * uz + self.x * uy - self.y * ux,
        )

    @property
    def angle(self) -> float:
        """The angle of the rotation, from 0 to pi."""
        return 2 * math.atan2(math.hypot(self.x, self.y, self.z), abs(self.w))

    def __mul__(self, other: Quaternion) -> Quaternion:
        """Return the Hamilton product: this rotation, then the other about the rotated axes."""
        return Quaternion(
            self.w * other.w - self.x * other.x - self.y * other.y - self.z * other.z,
            self.w * other.x + self.x * other.w + self.y * other.z - self.z * other.y,
            self.w * other.y - self.x * other.z + self.y * other.w + self.z * other.x,
            self.w * other.z + self.x * other.y - self.y * other.x + self.z * other.w,
        )


@dataclass(frozen=True, slots=True)
class Pose:
    """The position and orientation of one frame relative to another."""

    point: Vector
    rotation: Quaternion

    @classmethod
    def identity(cls) -> Pose:
        return cls(ZERO, Quaternion.identity())

    def compose(self, other: Pose) -> Pose:
        """Convert `other`, a pose relative to this pose, to the outer frame."""
        # Normalize each time, so that a long chain does not drift.
        return Pose(
            self.transform_point(other.point), (self.rotation * other.rotation).normalized()
        )

    def inverse(self) -> Pose:
        """Return the pose of the outer frame relative to this one."""
        rotation = self.rotation.inverse()
        x, y, z = rotation.rotate(self.point)
        return Pose((-x, -y, -z), rotation)

    def transform_point(self, vector: Vector) -> Vector:
        """Transform a point of this frame to the outer frame."""
        x, y, z = self.rotation.rotate(vector)
        return (self.point[0] + x, self.point[1] + y, self.point[2] + z)


def unit_vector(vector: Vector) -> Vector:
    """Return the vector scaled to length one. Raise ValueError for a zero vector."""
    length = math.hypot(*vector)
    if not 0 < length < math.inf:
        raise ValueError(
            "x, y and z of a direction must be finite, and at least one of them not zero"
        )
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def cross(one: Vector, other: Vector) -> Vector:
    """Return the cross product."""
    return (
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    )
