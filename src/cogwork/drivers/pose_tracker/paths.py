"""Poses of bodies on a circle or a line. Pure: a function of time."""

from __future__ import annotations

import math

from cogwork.drivers.joint_trajectory import JointTrajectory, TrajectorySegment
from cogwork.drivers.pose_tracker.attributes import (
    CircleAttributes,
    LineAttributes,
    PointAttributes,
    TrackedBody,
)
from cogwork.spatial.pose import Pose, Quaternion, Vector

_UP: Vector = (0.0, 0.0, 1.0)


def body_pose(body: TrackedBody, seconds: float) -> Pose:
    """Return the pose at a time in seconds after the start."""
    match body:
        case CircleAttributes():
            return circle_pose(_to_vector(body.center), body.radius_mm, seconds / body.period)
        case LineAttributes():
            start, end = _to_vector(body.start), _to_vector(body.end)
            segments = [
                TrajectorySegment(end, body.period / 2),
                TrajectorySegment(start, body.period / 2),
            ]
            x, y, z = (
                JointTrajectory.at_rest(start, 0.0)
                .follow_segments(segments, 0.0)
                .position_at(seconds % body.period)
            )
            return Pose((x, y, z), Quaternion.identity())
    return Pose(_to_vector(body.at), Quaternion.identity())


def circle_pose(center: Vector, radius: float, turns: float) -> Pose:
    """Return the pose after the given turns, counted from the direction of x. The x axis of the
    pose points along the motion."""
    angle = math.tau * (turns % 1.0)
    x, y, z = center
    position = (x + radius * math.cos(angle), y + radius * math.sin(angle), z)
    return Pose(position, Quaternion.from_axis_angle(_UP, angle + math.pi / 2))


def _to_vector(point: PointAttributes) -> Vector:
    return (point.x, point.y, point.z)
