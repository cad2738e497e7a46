"""Convert poses and geometries to and from the messages of the public API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from viam.gen.common.v1 import common_pb2 as common

from cogwork.core.errors import InvalidRequest
from cogwork.spatial.orientation import from_ov_degrees, require_number, to_ov_degrees
from cogwork.spatial.pose import Pose
from cogwork.spatial.shape import parse_shape

_MAX_COORDINATE: Final = 1e11
"""Maximum distance from the origin along an axis, in millimeters. Squares of far larger numbers
would overflow."""


def pose_to_proto(pose: Pose) -> common.Pose:
    x, y, z = pose.point
    o_x, o_y, o_z, theta = to_ov_degrees(pose.rotation)
    return common.Pose(x=x, y=y, z=z, o_x=o_x, o_y=o_y, o_z=o_z, theta=theta)


def pose_from_proto(pose: common.Pose) -> Pose:
    try:
        x, y, z = (_check_coordinate(name, getattr(pose, name)) for name in ("x", "y", "z"))
        direction = [
            _check_finite(name, getattr(pose, name)) for name in ("o_x", "o_y", "o_z", "theta")
        ]
        return Pose((x, y, z), from_ov_degrees(*direction))
    except ValueError as error:
        raise InvalidRequest(f"the pose is invalid: {error}") from None


def to_pose_in_frame(pose: Pose, frame: str) -> common.PoseInFrame:
    return common.PoseInFrame(reference_frame=frame, pose=pose_to_proto(pose))


def geometry_to_proto(data: Mapping[str, Any], label: str) -> common.Geometry:
    """Convert a geometry from a configuration. Raise ValueError if it is invalid."""
    shape = parse_shape(data)
    geometry = common.Geometry(label=str(data.get("label") or label))
    geometry.center.CopyFrom(pose_to_proto(shape.center))
    match shape.kind, shape.sizes:
        case "box", (x, y, z):
            geometry.box.dims_mm.CopyFrom(common.Vector3(x=x, y=y, z=z))
        case "capsule", (radius, length):
            geometry.capsule.radius_mm, geometry.capsule.length_mm = radius, length
        case _, radius:
            # The API represents a point as a sphere with a radius of 0.
            geometry.sphere.radius_mm = sum(radius)
    return geometry


def _check_coordinate(name: str, value: float) -> float:
    if abs(_check_finite(name, value)) > _MAX_COORDINATE:
        raise ValueError(f'"{name}" is {value:g} mm; the limit is {_MAX_COORDINATE:g} mm')
    return value


def _check_finite(name: str, value: float) -> float:
    return require_number(f'"{name}"', value)
