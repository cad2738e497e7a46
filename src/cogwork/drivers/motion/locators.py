"""What tells a base where it is: a map, or the globe."""

from __future__ import annotations

import math
from collections.abc import Callable

from viam.components.movement_sensor import MovementSensor
from viam.proto.common import GeoPoint
from viam.proto.common import Pose as PoseMessage
from viam.services.slam import SLAM

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.motion.drive import Sight
from cogwork.resource.poses import from_message
from cogwork.spatial.earth import Spot
from cogwork.spatial.pose import Pose

PATIENCE = 10.0
"""Seconds that a position may take."""


class OnMap:
    """On the map of a SLAM service, where whoever is not turned looks along x."""

    def __init__(self, find: Callable[[], SLAM], destination: PoseMessage) -> None:
        self._find = find
        self._destination = from_message(destination)
        self._faces_somewhere = has_direction(destination)

    async def place(self) -> PoseMessage:
        return await self._find().get_position(timeout=PATIENCE)

    async def sight(self) -> Sight:
        here = from_message(await self.place())
        x, y = (to - of for to, of in zip(self._destination.point[:2], here.point[:2], strict=True))
        return Sight(math.hypot(x, y), math.degrees(math.atan2(y, x)) - yaw(here))

    async def last_turn(self) -> float:
        if not self._faces_somewhere:
            return 0.0
        return yaw(self._destination) - yaw(from_message(await self.place()))


class OnGlobe:
    """Where a movement sensor says; headings are degrees clockwise from north."""

    def __init__(
        self, find: Callable[[], MovementSensor], destination: GeoPoint, heading: float | None
    ) -> None:
        if heading is not None and not 0 <= heading < 360:
            raise InvalidRequest(f"a heading is from 0 to less than 360 degrees, not {heading:g}")
        self._find = find
        self._destination = place_at(destination.latitude, destination.longitude)
        self._heading = heading

    async def place(self) -> PoseMessage:
        """As plans show it: the longitude as x, the latitude as y, in degrees."""
        here, _ = await self._find().get_position(timeout=PATIENCE)
        return on_globe(here, await self._facing())

    async def sight(self) -> Sight:
        here, _ = await self._find().get_position(timeout=PATIENCE)
        east, north = Spot(here.latitude, here.longitude).offset(self._destination)
        towards = math.degrees(math.atan2(east, north))
        return Sight(math.hypot(east, north) * 1000, await self._facing() - towards)

    async def last_turn(self) -> float:
        return 0.0 if self._heading is None else await self._facing() - self._heading

    async def _facing(self) -> float:
        return await self._find().get_compass_heading(timeout=PATIENCE)


def on_globe(place: GeoPoint, heading: float | None) -> PoseMessage:
    return PoseMessage(x=place.longitude, y=place.latitude, o_z=1, theta=-(heading or 0.0))


def has_direction(pose: PoseMessage) -> bool:
    """Whether it says how to be turned. One that does not leaves that open."""
    return any((pose.o_x, pose.o_y, pose.o_z, pose.theta))


def yaw(pose: Pose) -> float:
    """Degrees by which it is turned to the left, seen from above."""
    x, y, _ = pose.turned.rotate((1.0, 0.0, 0.0))
    return math.degrees(math.atan2(y, x))


def place_at(latitude: float, longitude: float) -> Spot:
    """As a client gives it."""
    found = Spot(latitude, longitude)
    if not found.is_on_earth:
        raise InvalidRequest(
            f"there is no place at latitude {latitude:g} and longitude {longitude:g}"
        )
    return found
