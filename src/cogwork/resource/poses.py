"""Poses and shapes as the messages of the public API carry them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.gen.common.v1 import common_pb2 as common

from cogwork.core.errors import InvalidRequest
from cogwork.spatial.orientation import from_ov_degrees, number, read_orientation, to_ov_degrees
from cogwork.spatial.pose import Pose, Vector


def to_message(pose: Pose) -> common.Pose:
    x, y, z = pose.point
    o_x, o_y, o_z, theta = to_ov_degrees(pose.turned)
    return common.Pose(x=x, y=y, z=z, o_x=o_x, o_y=o_y, o_z=o_z, theta=theta)


def from_message(pose: common.Pose) -> Pose:
    try:
        point = (_finite("x", pose.x), _finite("y", pose.y), _finite("z", pose.z))
        direction = [_finite(name, getattr(pose, name)) for name in ("o_x", "o_y", "o_z", "theta")]
        return Pose(point, from_ov_degrees(*direction))
    except ValueError as error:
        raise InvalidRequest(f"that is no pose: {error}") from None


def placed(pose: Pose, frame: str) -> common.PoseInFrame:
    return common.PoseInFrame(reference_frame=frame, pose=to_message(pose))


def pose_of(translation: Vector, kind: str, value: Mapping[str, object] | None) -> Pose:
    """As a configuration writes it."""
    return Pose(translation, read_orientation(kind, value))


def shape_of(written: Mapping[str, Any], label: str) -> common.Geometry:
    """A geometry as a configuration writes it, such as
    `{"type": "box", "x": 100, "y": 200, "z": 50, "translation": {"z": 25}}`. Raises ValueError."""
    shape = common.Geometry(label=str(written.get("label") or label))
    shape.center.CopyFrom(to_message(_center(written)))
    kind = written.get("type") or _guessed(written)
    match kind:
        case "box":
            x, y, z = (_size(written, axis) for axis in ("x", "y", "z"))
            shape.box.dims_mm.CopyFrom(common.Vector3(x=x, y=y, z=z))
        case "sphere":
            shape.sphere.radius_mm = _size(written, "r")
        case "capsule":
            shape.capsule.radius_mm = _size(written, "r")
            shape.capsule.length_mm = _size(written, "l")
        case "point":
            shape.sphere.radius_mm = 0.0
        case _:
            raise ValueError(f'"{kind}" is no shape; there are box, sphere, capsule and point')
    return shape


def _center(written: Mapping[str, Any]) -> Pose:
    translation = written.get("translation") or {}
    orientation = written.get("orientation") or {}
    if not isinstance(translation, Mapping) or not isinstance(orientation, Mapping):
        raise ValueError(  # noqa: TRY004 - whoever wrote it has no types
            '"translation" and "orientation" of a geometry are objects'
        )
    x, y, z = (number(f'"{axis}"', translation.get(axis, 0.0)) for axis in ("x", "y", "z"))
    return pose_of((x, y, z), str(orientation.get("type") or ""), orientation.get("value"))


def _guessed(written: Mapping[str, Any]) -> str:
    """Older files leave the type out."""
    if any(written.get(axis) for axis in ("x", "y", "z")):
        return "box"
    if written.get("l"):
        return "capsule"
    return "sphere" if written.get("r") else "point"


def _size(written: Mapping[str, Any], name: str) -> float:
    size = number(f'"{name}" of a geometry', written.get(name, 0.0))
    if size <= 0:
        raise ValueError(f'"{name}" of a geometry is missing, or not above 0')
    return size


def _finite(name: str, value: float) -> float:
    return number(f'"{name}"', value)
