"""The ways to write a rotation: orientation vector, euler angles, axis and angle, quaternion."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches

from cogwork.spatial.pose import Quaternion, Vector, cross, unit

Matrix = tuple[Vector, Vector, Vector]
"""Three rows."""

_TYPES = "ov_degrees, ov_radians, euler_angles, axis_angles and quaternion"
_NEAR_POLE = 1e-4
_UP: Vector = (0.0, 0.0, 1.0)


def read_orientation(kind: str, value: Mapping[str, object] | None) -> Quaternion:
    """A rotation as a configuration writes it. ValueError says what is wrong with it."""
    if not kind and not value:
        return Quaternion.identity()
    if not kind:
        raise ValueError(f"an orientation needs a type; there are {_TYPES}")
    if kind not in _READERS:
        close = get_close_matches(kind.lower(), _READERS, n=1)
        hint = f': did you mean "{close[0]}"?' if close else ""
        raise ValueError(f'"{kind}" is not a type of orientation{hint}; there are {_TYPES}')
    if not value:
        return Quaternion.identity()
    fields, read = _READERS[kind]
    return read(*_numbers(kind, fields, value))


def from_ov_degrees(o_x: float, o_y: float, o_z: float, theta: float) -> Quaternion:
    """From an orientation vector as requests carry it."""
    return from_ov(o_x, o_y, o_z, math.radians(theta))


def to_ov_degrees(turned: Quaternion) -> tuple[float, float, float, float]:
    o_x, o_y, o_z, theta = to_ov(turned)
    return o_x, o_y, o_z, math.degrees(theta)


def from_ov(x: float, y: float, z: float, theta: float) -> Quaternion:
    """An orientation vector: where the z axis points, and a turn about that direction.

    It is a turn of theta about z, then down from z by the latitude, then about z to
    the longitude. Close to the poles the longitude means nothing: there theta says
    which way the x axis points, as if the longitude were zero. Without a direction it
    is straight up.
    """
    direction = unit((x, y, z)) if x or y or z else _UP
    if _near_pole(direction):
        return _at_pole(direction, theta)
    latitude = math.atan2(math.hypot(direction[0], direction[1]), direction[2])
    longitude = math.atan2(direction[1], direction[0])
    down = Quaternion.about((0.0, 1.0, 0.0), latitude)
    return (Quaternion.about(_UP, longitude) * down * Quaternion.about(_UP, theta)).normalized()


def to_ov(turned: Quaternion) -> tuple[float, float, float, float]:
    """The direction of the z axis with length one, and theta from -pi to pi."""
    turned = turned.normalized()
    direction = unit(turned.rotate(_UP))
    if _near_pole(direction):
        x, y, _ = turned.rotate((1.0, 0.0, 0.0))
        return *direction, math.atan2(y, math.copysign(1.0, direction[2]) * x)
    # These are the half sum and the half difference of longitude and theta.
    theta = math.atan2(turned.z, turned.w) - math.atan2(-turned.x, turned.y)
    return *direction, math.remainder(theta, math.tau)


def from_euler(roll: float, pitch: float, yaw: float) -> Quaternion:
    """A turn about z by yaw, about the new y by pitch, about the newest x by roll."""
    about_y = Quaternion.about((0.0, 1.0, 0.0), pitch)
    about_x = Quaternion.about((1.0, 0.0, 0.0), roll)
    return (Quaternion.about(_UP, yaw) * about_y * about_x).normalized()


def from_axis_angle(theta: float, x: float, y: float, z: float) -> Quaternion:
    return Quaternion.about((x, y, z), theta)


def from_matrix(matrix: Matrix) -> Quaternion:
    """From a rotation matrix. Of the four ways to read it, the one with the largest divisor."""
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


def to_matrix(turned: Quaternion) -> Matrix:
    """Its columns are where the three axes end up."""
    first, second, third = (turned.rotate(axis) for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), _UP))
    return _transposed((first, second, third))


def _near_pole(direction: Vector) -> bool:
    return 1 - abs(direction[2]) <= _NEAR_POLE


def _at_pole(z_axis: Vector, theta: float) -> Quaternion:
    """The x axis lies across the direction, and from above it points along theta.

    At the lower pole the frame hangs upside down, so that theta is seen from below.
    """
    x, y = math.copysign(1.0, z_axis[2]) * math.cos(theta), math.sin(theta)
    x_axis = unit((x, y, -(z_axis[0] * x + z_axis[1] * y) / z_axis[2]))
    return from_matrix(_transposed((x_axis, cross(z_axis, x_axis), z_axis)))


def _transposed(rows: Matrix) -> Matrix:
    (a, b, c), (d, e, f), (g, h, i) = rows
    return (a, d, g), (b, e, h), (c, f, i)


def _read_ov_degrees(x: float, y: float, z: float, th: float) -> Quaternion:
    return from_ov(x, y, z, math.radians(th))


def _read_axis_angles(x: float, y: float, z: float, th: float) -> Quaternion:
    return from_axis_angle(th, x, y, z)


def _read_quaternion(w: float, x: float, y: float, z: float) -> Quaternion:
    return Quaternion(w, x, y, z).normalized()


_AXIS = ("x", "y", "z", "th")
_READERS: Mapping[str, tuple[tuple[str, ...], Callable[..., Quaternion]]] = {
    "ov_degrees": (_AXIS, _read_ov_degrees),
    "ov_radians": (_AXIS, from_ov),
    "euler_angles": (("roll", "pitch", "yaw"), from_euler),
    "axis_angles": (_AXIS, _read_axis_angles),
    "quaternion": (("w", "x", "y", "z"), _read_quaternion),
}


def _numbers(kind: str, fields: tuple[str, ...], value: Mapping[str, object]) -> list[float]:
    value = {key.lower(): given for key, given in value.items()}
    for key in value:
        if key not in fields:
            raise ValueError(f'"{key}" is not a field of {kind}; it has {", ".join(fields)}')
    return [number(f'"{field}" of {kind}', value.get(field, 0.0)) for field in fields]


def number(what: str, value: object) -> float:
    """A finite number out of a file; `what` says where it was, for the error."""
    # The size is compared: an integer can be too large to become a float.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) <= sys.float_info.max
    ):
        raise ValueError(f"{what} is not a finite number")
    return float(value)
