"""Where a body is that goes round, or there and back. Pure: it depends on the time alone."""

from __future__ import annotations

import math

from cogwork.drivers.course import Course, Leg
from cogwork.drivers.pose_tracker.attributes import (
    CircleAttributes,
    LineAttributes,
    Moving,
    Place,
)
from cogwork.spatial.pose import Pose, Quaternion, Vector

_UP: Vector = (0.0, 0.0, 1.0)


def pose_of(body: Moving, seconds: float) -> Pose:
    """So many seconds after it began."""
    match body:
        case CircleAttributes():
            return on_circle(_point(body.center), body.radius_mm, seconds / body.period)
        case LineAttributes():
            start, end = _point(body.start), _point(body.end)
            legs = [Leg(end, body.period / 2), Leg(start, body.period / 2)]
            x, y, z = Course.rest(start, 0.0).along(legs, 0.0).at(seconds % body.period)
            return Pose((x, y, z), Quaternion.identity())
    return Pose(_point(body.at), Quaternion.identity())


def on_circle(center: Vector, radius: float, turns: float) -> Pose:
    """So many turns after it was in the direction of x; its own x axis points ahead."""
    angle = math.tau * (turns % 1.0)
    x, y, z = center
    place = (x + radius * math.cos(angle), y + radius * math.sin(angle), z)
    return Pose(place, Quaternion.about(_UP, angle + math.pi / 2))


def _point(place: Place) -> Vector:
    return (place.x, place.y, place.z)
