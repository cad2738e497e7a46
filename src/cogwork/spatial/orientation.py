"""Representations of a rotation: orientation vector, Euler angles, axis-angle, quaternion."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from cogwork.spatial.pose import Quaternion, Vector, cross, unit_vector

Matrix = tuple[Vector, Vector, Vector]
"""A 3x3 matrix as three rows."""

_TYPES = "ov_degrees, ov_radians, euler_angles, axis_angles and quaternion"
_NEAR_POLE = 1e-4
_UP: Vector = (0.0, 0.0, 1.0)


def parse_orientation(kind: str, value: Mapping[str, object] | None) -> Quaternion:
    """Parse a rotation from a configuration. Raise ValueError if it is invalid."""
    if not kind and not value:
        return Quaternion.identity()
    if not kind:
        raise ValueError(f"an orientation needs a type; the types are {_TYPES}")
    if kind not in _PARSERS:
        close = get_close_matches(kind.lower(), _PARSERS, n=1)
        hint = f': did you mean "{close[0]}"?' if close else ""
        raise ValueError(f'"{kind}" is not a type of orientation{hint}; the types are {_TYPES}')
    if not value:
        return Quaternion.identity()
    fields, parse = _PARSERS[kind]
    return parse(*_require_numbers(kind, fields, value))


def from_ov_degrees(o_x: float, o_y: float, o_z: float, theta: float) -> Quaternion:
    """Convert an orientation vector with theta in degrees, as in requests."""
    return from_ov(o_x, o_y, o_z, math.radians(theta))


def to_ov_degrees(rotation: Quaternion) -> tuple[float, float, float, float]:
    o_x, o_y, o_z, theta = to_ov(rotation)
    return o_x, o_y, o_z, math.degrees(theta)


def from_ov(x: float, y: float, z: float, theta: float) -> Quaternion:
    """Convert an orientation vector: the direction of the z axis, and a rotation about it.

    The rotation is by theta about z, then down from z by the latitude, then about z by the
    longitude. Close to the poles the longitude is undefined: there theta defines the direction of
    the x axis, as if the longitude were zero. A zero vector points straight up.
    """
    direction = unit_vector((x, y, z)) if x or y or z else _UP
    if _is_near_pole(direction):
        return _from_ov_at_pole(direction, theta)
    latitude = math.atan2(math.hypot(direction[0], direction[1]), direction[2])
    longitude = math.atan2(direction[1], direction[0])
    down = Quaternion.from_axis_angle((0.0, 1.0, 0.0), latitude)
    return (
        Quaternion.from_axis_angle(_UP, longitude) * down * Quaternion.from_axis_angle(_UP, theta)
    ).normalized()


def to_ov(rotation: Quaternion) -> tuple[float, float, float, float]:
    """Return the direction of the z axis as a unit vector, and theta from -pi to pi."""
    rotation = rotation.normalized()
    direction = unit_vector(rotation.rotate(_UP))
    if _is_near_pole(direction):
        x, y, _ = rotation.rotate((1.0, 0.0, 0.0))
        return *direction, math.atan2(y, math.copysign(1.0, direction[2]) * x)
    # These two arctangents are half the sum and half the difference of longitude and theta.
    theta = math.atan2(rotation.z, rotation.w) - math.atan2(-rotation.x, rotation.y)
    return *direction, math.remainder(theta, math.tau)


def from_euler(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Convert intrinsic z-y'-x'' Euler angles in radians: yaw, then pitch, then roll."""
    about_y = Quaternion.from_axis_angle((0.0, 1.0, 0.0), pitch)
    about_x = Quaternion.from_axis_angle((1.0, 0.0, 0.0), roll)
    return (Quaternion.from_axis_angle(_UP, yaw) * about_y * about_x).normalized()


def from_axis_angle(theta: float, x: float, y: float, z: float) -> Quaternion:
    return Quaternion.from_axis_angle((x, y, z), theta)


def from_matrix(matrix: Matrix) -> Quaternion:
    """Convert a rotation matrix; of four equivalent formulas, use the most accurate one."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = matrix
    if xx + yy + zz > 0:
        raw = Quaternion(1 + xx + yy + zz, zy - yz, xz - zx, yx - xy)
    elif xx >= yy and xx >= zz:
        raw = Quaternion(zy - yz, 1 + xx - yy - zz, xy + yx, xz + zx)
    elif yy >= zz:
        raw = Quaternion(xz - zx, xy + yx, 1 + yy - xx - zz, yz + zy)
    else:
        raw = Quaternion(yx - xy, xz + zx, yz + zy, 1 + zz - xx - yy)
    return raw.normalized()


def to_matrix(rotation: Quaternion) -> Matrix:
    """Return the rotation matrix, whose columns are the rotated axes."""
    x, y, z = (rotation.rotate(axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), _UP))
    return _transpose((x, y, z))


def _is_near_pole(direction: Vector) -> bool:
    return 1 - abs(direction[2]) <= _NEAR_POLE


def _from_ov_at_pole(z_axis: Vector, theta: float) -> Quaternion:
    """Convert an orientation vector close to a pole.

    The x axis is perpendicular to the z axis, and its horizontal direction is theta. At the lower
    pole the frame is upside down, so theta is the direction as seen from below.
    """
    x, y = math.copysign(1.0, z_axis[2]) * math.cos(theta), math.sin(theta)
    x_axis = unit_vector((x, y, -(z_axis[0] * x + z_axis[1] * y) / z_axis[2]))
    return from_matrix(_transpose((x_axis, cross(z_axis, x_axis), z_axis)))


def _transpose(rows: Matrix) -> Matrix:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return (a, d, g), (b, e, h), (c, f, i)


def _parse_ov_degrees(x: float, y: float, z: float, th: float) -> Quaternion:
    return from_ov(x, y, z, math.radians(th))


def _parse_axis_angles(x: float, y: float, z: float, th: float) -> Quaternion:
    return from_axis_angle(th, x, y, z)


def _parse_quaternion(w: float, x: float, y: float, z: float) -> Quaternion:
    return Quaternion(w, x, y, z).normalized()


_AXIS_FIELDS = ("x", "y", "z", "th")
_PARSERS: Mapping[str, tuple[tuple[str, ...], Callable[..., Quaternion]]] = {
    "ov_degrees": (_AXIS_FIELDS, _parse_ov_degrees),
    "ov_radians": (_AXIS_FIELDS, from_ov),
    "euler_angles": (("roll", "pitch", "yaw"), from_euler),
    "axis_angles": (_AXIS_FIELDS, _parse_axis_angles),
    "quaternion": (("w", "x", "y", "z"), _parse_quaternion),
}


def _require_numbers(
    kind: str, fields: tuple[str, ...], value: Mapping[str, object]
) -> list[float]:
    value = {key.lower(): given for key, given in value.items()}
    for key in value:
        if key not in fields:
            raise ValueError(
                f'"{key}" is not a field of {kind}; the fields are {", ".join(fields)}'
            )
    return [require_number(f'"{field}" of {kind}', value.get(field, 0.0)) for field in fields]


def require_number(what: str, value: object) -> float:
    """Return a value from a file as a float.

    Raise ValueError if the value is not a finite number. `what` names the value in the error.
    """
    # Do not use math.isfinite: it raises an error for an integer that is too large for a float.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max
    ):
        raise ValueError(f"{what} is not a finite number")
    return float(value)
