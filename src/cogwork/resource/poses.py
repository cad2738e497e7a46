"""Poses and shapes as the messages of the public API carry them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.gen.common.v1 import common_pb2 as common

from cogwork.core.errors import InvalidRequest
from cogwork.spatial.orientation import from_ov_degrees, number, to_ov_degrees
from cogwork.spatial.pose import Pose
from cogwork.spatial.shape import read_shape


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


def shape_of(written: Mapping[str, Any], label: str) -> common.Geometry:
    """A geometry as a configuration writes it. Raises ValueError."""
    shape = read_shape(written)
    told = common.Geometry(label=str(written.get("label") or label))
    told.center.CopyFrom(to_message(shape.center))
    match shape.kind, shape.sizes:
        case "box", (x, y, z):
            told.box.dims_mm.CopyFrom(common.Vector3(x=x, y=y, z=z))
        case "capsule", (radius, length):
            told.capsule.radius_mm, told.capsule.length_mm = radius, length
        case _, radius:
            # A point is a sphere, too.
            told.sphere.radius_mm = sum(radius)
    return told


def _finite(name: str, value: float) -> float:
    return number(f'"{name}"', value)
