"""Locators: the position of a base on a map or on the globe."""

from __future__ import annotations

import math
from collections.abc import Callable

from viam.components.movement_sensor import MovementSensor
from viam.proto.common import GeoPoint
from viam.proto.common import Pose as PoseMessage
from viam.services.slam import SLAM

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.motion.base_drive import GoalBearing
from cogwork.resource.messages.pose_proto import pose_from_proto
from cogwork.spatial.geodesy import GeoCoordinate
from cogwork.spatial.pose import Pose

POSITION_TIMEOUT = 10.0
"""Timeout of a position request, in seconds."""


class MapLocator:
    """Locates a base on the map of a SLAM service, where an unrotated base faces along x."""

    def __init__(self, find: Callable[[], SLAM], destination: PoseMessage) -> None:
        self._find = find
        self._destination = pose_from_proto(destination)
        self._has_final_heading = has_orientation(destination)

    async def current_pose(self) -> PoseMessage:
        return await self._find().get_position(timeout=POSITION_TIMEOUT)

    async def locate_goal(self) -> GoalBearing:
        position = pose_from_proto(await self.current_pose())
        x, y = (
            to - of for to, of in zip(self._destination.point[:2], position.point[:2], strict=True)
        )
        return GoalBearing(math.hypot(x, y), math.degrees(math.atan2(y, x)) - yaw(position))

    async def final_turn(self) -> float:
        if not self._has_final_heading:
            return 0.0
        return yaw(self._destination) - yaw(pose_from_proto(await self.current_pose()))


class GlobeLocator:
    """Locates a base with a movement sensor. Headings are in degrees clockwise from north."""

    def __init__(
        self, find: Callable[[], MovementSensor], destination: GeoPoint, heading: float | None
    ) -> None:
        if heading is not None and not 0 <= heading < 360:
            raise InvalidRequest(
                f"a heading must be from 0 to less than 360 degrees, not {heading:g}"
            )
        self._find = find
        self._destination = parse_location(destination.latitude, destination.longitude)
        self._heading = heading

    async def current_pose(self) -> PoseMessage:
        """Return the current pose in the format of plans: longitude as x and latitude as y, in
        degrees."""
        position, _ = await self._find().get_position(timeout=POSITION_TIMEOUT)
        return globe_pose(position, await self._compass_heading())

    async def locate_goal(self) -> GoalBearing:
        position, _ = await self._find().get_position(timeout=POSITION_TIMEOUT)
        east, north = GeoCoordinate(position.latitude, position.longitude).offset_to(
            self._destination
        )
        bearing = math.degrees(math.atan2(east, north))
        return GoalBearing(math.hypot(east, north) * 1000, await self._compass_heading() - bearing)

    async def final_turn(self) -> float:
        return 0.0 if self._heading is None else await self._compass_heading() - self._heading

    async def _compass_heading(self) -> float:
        return await self._find().get_compass_heading(timeout=POSITION_TIMEOUT)


def globe_pose(point: GeoPoint, heading: float | None) -> PoseMessage:
    return PoseMessage(x=point.longitude, y=point.latitude, o_z=1, theta=-(heading or 0.0))


def has_orientation(pose: PoseMessage) -> bool:
    """Return whether the pose specifies an orientation."""
    return any((pose.o_x, pose.o_y, pose.o_z, pose.theta))


def yaw(pose: Pose) -> float:
    """Return the rotation to the left, seen from above, in degrees."""
    x, y, _ = pose.rotation.rotate((1.0, 0.0, 0.0))
    return math.degrees(math.atan2(y, x))


def parse_location(latitude: float, longitude: float) -> GeoCoordinate:
    """Parse a location from a client."""
    location = GeoCoordinate(latitude, longitude)
    if not location.is_valid:
        raise InvalidRequest(
            f"latitude {latitude:g} and longitude {longitude:g} are not a valid location"
        )
    return location
