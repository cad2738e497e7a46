"""Where something is and how it is turned, and how such poses follow one another."""

from __future__ import annotations

import math
from dataclasses import dataclass

Vector = tuple[float, float, float]
"""Millimetres along x, y and z; or a direction."""

ZERO: Vector = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Quaternion:
    """A rotation. It has length one; `normalized` makes it so."""

    w: float
    x: float
    y: float
    z: float

    @classmethod
    def identity(cls) -> Quaternion:
        return cls(1.0, 0.0, 0.0, 0.0)

    @classmethod
    def about(cls, axis: Vector, angle: float) -> Quaternion:
        """A turn by so many radians, counterclockwise when the axis points at you."""
        x, y, z = unit(axis)
        sine = math.sin(angle / 2)
        return cls(math.cos(angle / 2), x * sine, y * sine, z * sine)

    def normalized(self) -> Quaternion:
        """The same rotation with length one. Only zeros are none: ValueError."""
        biggest = max(abs(self.w), abs(self.x), abs(self.y), abs(self.z))
        if not 0 < biggest < math.inf:
            raise ValueError("a quaternion needs a finite w, x, y or z that is not zero")
        # Scaled first: the squares of very small or large numbers do not fit a float.
        w, x, y, z = self.w / biggest, self.x / biggest, self.y / biggest, self.z / biggest
        length = math.sqrt(w * w + x * x + y * y + z * z)
        return Quaternion(w / length, x / length, y / length, z / length)

    def inverse(self) -> Quaternion:
        return Quaternion(self.w, -self.x, -self.y, -self.z)

    def rotate(self, vector: Vector) -> Vector:
        x, y, z = vector
        # Twice the cross product of the axis and the vector.
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
        """How far it turns, from 0 to pi."""
        return 2 * math.atan2(math.hypot(self.x, self.y, self.z), abs(self.w))

    def __mul__(self, other: Quaternion) -> Quaternion:
        """This rotation, then the other one about the axes that this one has turned."""
        return Quaternion(
            self.w * other.w - self.x * other.x - self.y * other.y - self.z * other.z,
            self.w * other.x + self.x * other.w + self.y * other.z - self.z * other.y,
            self.w * other.y - self.x * other.z + self.y * other.w + self.z * other.x,
            self.w * other.z + self.x * other.y - self.y * other.x + self.z * other.w,
        )


@dataclass(frozen=True, slots=True)
class Pose:
    """A place and a rotation: where one frame is, seen from another."""

    point: Vector
    turned: Quaternion

    @classmethod
    def zero(cls) -> Pose:
        """The same frame: at the same place, turned the same way."""
        return cls(ZERO, Quaternion.identity())

    def then(self, other: Pose) -> Pose:
        """Where `other` is, when `other` is seen from this pose."""
        # Normalized each time, so that a long chain does not drift.
        return Pose(self.place(other.point), (self.turned * other.turned).normalized())

    def inverse(self) -> Pose:
        """Where the outer frame is, seen from this one."""
        back = self.turned.inverse()
        x, y, z = back.rotate(self.point)
        return Pose((-x, -y, -z), back)

    def place(self, vector: Vector) -> Vector:
        """Where a point of this frame is in the outer one."""
        x, y, z = self.turned.rotate(vector)
        return (self.point[0] + x, self.point[1] + y, self.point[2] + z)


def unit(vector: Vector) -> Vector:
    """The direction of a vector, with length one. Only zeros have none: ValueError."""
    length = math.hypot(*vector)
    if not 0 < length < math.inf:
        raise ValueError("a direction needs a finite x, y or z that is not zero")
    return (vector[0] / length, vector[1] / length, vector[2] / length)


def cross(one: Vector, other: Vector) -> Vector:
    """The vector across both, by the right hand."""
    return (
        one[1] * other[2] - one[2] * other[1],
        one[2] * other[0] - one[0] * other[2],
        one[0] * other[1] - one[1] * other[0],
    )
