"""A room with a pillar in its middle, and a way round it."""

from __future__ import annotations

import itertools
import math
import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from cogwork.drivers.base.drive import Place
from cogwork.drivers.course import Course
from cogwork.spatial.pose import Pose, Quaternion

_HEADER = """\
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
_PILLAR = 0.25
"""Its share of the room, along each side."""
_WAY = 0.625
"""Half way between the pillar and the walls."""

Corner = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Room:
    """In millimetres; the origin is in the middle of the floor."""

    width: float
    depth: float
    height: float
    resolution: float

    def cloud(self) -> bytes:
        """The walls and the pillar as a PCD file, in metres. Takes time: call it in a thread."""
        lines = [*self._around(1.0), *self._around(_PILLAR)]
        points = array("f")
        for level in _steps(self.height, self.resolution):
            z = level / 1000
            for x, y in lines:
                points.extend((x / 1000, y / 1000, z))
        if sys.byteorder == "big":
            points.byteswap()
        return _HEADER.format(points=len(points) // 3).encode() + points.tobytes()

    def way(self, speed: float) -> Course:
        """Once round the pillar."""
        corners = self._corners(_WAY)
        start = Course.rest(corners[0], 0.0)
        return start.through([*corners[1:], corners[0]], (speed, speed), 0.0)

    def _around(self, share: float) -> Iterator[Corner]:
        corners = self._corners(share)
        for (x, y), (to_x, to_y) in itertools.pairwise([*corners, corners[0]]):
            length = math.dist((x, y), (to_x, to_y))
            for step in _steps(length, self.resolution):
                yield x + (to_x - x) * step / length, y + (to_y - y) * step / length

    def _corners(self, share: float) -> list[Corner]:
        x, y = self.width / 2 * share, self.depth / 2 * share
        return [(x, -y), (x, y), (-x, y), (-x, -y)]


def pose_on(way: Course, seconds: float) -> Pose:
    """Of somebody who goes it again and again, and looks ahead."""
    at = seconds % way.seconds
    x, y = way.at(at)
    # Ahead is where the next moment is; at a corner, round it.
    ahead_x, ahead_y = way.at((at + way.seconds / 1e6) % way.seconds)
    heading = math.atan2(ahead_y - y, ahead_x - x)
    return Pose((x, y, 0.0), Quaternion.about((0.0, 0.0, 1.0), heading))


def pose_of(place: Place) -> Pose:
    """Seen from where the base first stood. On a map whoever looks ahead looks along x, and a base
    looks along its y."""
    turned = Quaternion.about((0.0, 0.0, 1.0), math.radians(place.heading))
    return Pose((place.y, -place.x, 0.0), turned)


def _steps(length: float, step: float) -> Iterator[float]:
    return (number * step for number in range(math.ceil(length / step)))
