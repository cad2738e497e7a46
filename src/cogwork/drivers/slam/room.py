"""A simulated room with a pillar in its center and a path around the pillar."""

from __future__ import annotations

import itertools
import math
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from cogwork.drivers.base.planar_motion import BasePose
from cogwork.drivers.joint_trajectory import JointTrajectory
from cogwork.spatial.pose import Pose, Quaternion

_PCD_HEADER = """\
VERSION .7
FIELDS x y z
SIZE 4 4 4
TYPE F F F
COUNT 1 1 1
WIDTH {points}
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS {points}
DATA binary
"""
_PILLAR_FRACTION = 0.25
"""Size of the pillar as a fraction of the room, along each side."""
_LOOP_FRACTION = 0.625
"""Size of the path as a fraction of the room: halfway between pillar and walls."""

Corner = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Room:
    """A room in millimeters; the origin is in the center of the floor."""

    width: float
    depth: float
    height: float
    resolution: float

    def point_cloud(self) -> bytes:
        """Return the walls and the pillar as a PCD file, in meters. Slow: call it in a thread."""
        lines = [*self._perimeter_points(1.0), *self._perimeter_points(_PILLAR_FRACTION)]
        points = array("f")
        for level in _steps(self.height, self.resolution):
            z = level / 1000
            for x, y in lines:
                points.extend((x / 1000, y / 1000, z))
        if sys.byteorder == "big":
            points.byteswap()
        return _PCD_HEADER.format(points=len(points) // 3).encode() + points.tobytes()

    def loop_trajectory(self, speed: float) -> JointTrajectory:
        """Return one lap around the pillar."""
        corners = self._corners(_LOOP_FRACTION)
        start = JointTrajectory.at_rest(corners[0], 0.0)
        return start.move_through([*corners[1:], corners[0]], (speed, speed), 0.0)

    def _perimeter_points(self, fraction: float) -> Iterator[Corner]:
        corners = self._corners(fraction)
        for (x, y), (to_x, to_y) in itertools.pairwise([*corners, corners[0]]):
            length = math.dist((x, y), (to_x, to_y))
            for step in _steps(length, self.resolution):
                yield x + (to_x - x) * step / length, y + (to_y - y) * step / length

    def _corners(self, fraction: float) -> list[Corner]:
        x, y = self.width / 2 * fraction, self.depth / 2 * fraction
        return [(x, -y), (x, y), (-x, y), (-x, -y)]


def pose_along(trajectory: JointTrajectory, seconds: float) -> Pose:
    """Return the pose of a body that repeats the trajectory, facing forward."""
    time = seconds % trajectory.seconds
    x, y = trajectory.position_at(time)
    # The next position along the trajectory gives the heading, also at corners.
    ahead_x, ahead_y = trajectory.position_at(
        (time + trajectory.seconds / 1e6) % trajectory.seconds
    )
    heading = math.atan2(ahead_y - y, ahead_x - x)
    return Pose((x, y, 0.0), Quaternion.from_axis_angle((0.0, 0.0, 1.0), heading))


def base_to_map_pose(pose: BasePose) -> Pose:
    """Convert a pose relative to the base's start to the map.

    Forward is along x on a map, and along y for a base.
    """
    rotation = Quaternion.from_axis_angle((0.0, 0.0, 1.0), math.radians(pose.heading))
    return Pose((pose.y, -pose.x, 0.0), rotation)


def _steps(length: float, step: float) -> Iterator[float]:
    return (number * step for number in range(math.ceil(length / step)))
