"""How positions are written on a map: as poses in millimetres, or as places on the globe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from viam.proto.common import GeoPoint, GeoPose, Pose
from viam.proto.service.navigation import MapType, Position

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.motion.locators import has_direction, place_at, yaw
from cogwork.resource.poses import from_message
from cogwork.spatial import earth
from cogwork.spatial.orientation import from_ov_degrees
from cogwork.spatial.pose import ZERO
from cogwork.spatial.pose import Pose as SpatialPose

Spot = tuple[float, float]
"""Metres along x and y; on the globe to the east and to the north of where the chart begins."""

FARTHEST = 1_000_000.0
"""Metres: a chart is flat, and the globe is not."""


@dataclass(frozen=True, slots=True)
class Place:
    spot: Spot
    yaw: float | None
    """Degrees to the left of x. None: whichever way it comes."""


class Chart(Protocol):
    @property
    def map_type(self) -> MapType.ValueType: ...

    def read(self, position: Position) -> Place:
        """Refuses what is no position here."""

    def write(self, place: Place) -> Position: ...

    def spot(self, written: object, what: str) -> Spot:
        """A point of a zone."""

    def metres(self, length: float) -> float:
        """A length of a zone."""


class LocalChart:
    """Whoever is not turned looks along x, as on the map of a SLAM service."""

    map_type = MapType.MAP_TYPE_LOCAL

    def read(self, position: Position) -> Place:
        if position.WhichOneof("value") != "pose":
            raise InvalidRequest(
                "a position on this map is a pose in millimetres: its type is MAP_TYPE_LOCAL"
            )
        pose = from_message(position.pose)
        x, y, _ = pose.point
        facing = yaw(pose) if has_direction(position.pose) else None
        return Place(_near((x / 1000, y / 1000)), facing)

    def write(self, place: Place) -> Position:
        x, y = place.spot
        return Position(pose=Pose(x=x * 1000, y=y * 1000, o_z=1, theta=place.yaw or 0.0))

    def spot(self, written: object, what: str) -> Spot:
        x, y = _numbers(written, what, "x", "y")
        return _near((x / 1000, y / 1000))

    def metres(self, length: float) -> float:
        return length / 1000


@dataclass(frozen=True, slots=True)
class GpsChart:
    origin: earth.Spot

    @property
    def map_type(self) -> MapType.ValueType:
        return MapType.MAP_TYPE_GPS

    def read(self, position: Position) -> Place:
        if position.WhichOneof("value") != "geo_pose":
            raise InvalidRequest("a position on this map is a geo pose: its type is MAP_TYPE_GPS")
        there = position.geo_pose
        spot = self._spot(there.location.latitude, there.location.longitude)
        return Place(spot, _facing(there))

    def write(self, place: Place) -> Position:
        there = self.origin.moved(*place.spot)
        return Position(
            geo_pose=GeoPose(
                location=GeoPoint(latitude=there.latitude, longitude=there.longitude),
                heading=(90 - (place.yaw or 0.0)) % 360,
            )
        )

    def spot(self, written: object, what: str) -> Spot:
        return self._spot(*_numbers(written, what, "latitude", "longitude"))

    def metres(self, length: float) -> float:
        return length

    def _spot(self, latitude: float, longitude: float) -> Spot:
        return _near(self.origin.offset(place_at(latitude, longitude)))


def _facing(pose: GeoPose) -> float | None:
    """Zero of an orientation vector looks north, and x is east."""
    match pose.WhichOneof("orientation"):
        case "heading":
            if not math.isfinite(pose.heading):
                raise InvalidRequest(f"there is no heading {pose.heading:g}")
            return 90 - pose.heading
        case "orientation_vector":
            vector = pose.orientation_vector
            try:
                turned = from_ov_degrees(vector.o_x, vector.o_y, vector.o_z, vector.theta)
            except ValueError as error:
                raise InvalidRequest(f"that is no orientation: {error}") from None
            return 90 + yaw(SpatialPose(ZERO, turned))
    return None


def _near(spot: Spot) -> Spot:
    if not math.hypot(*spot) <= FARTHEST:
        raise InvalidRequest(f"that is more than {FARTHEST / 1000:g} km from where the map begins")
    return spot


def _numbers(written: object, what: str, *keys: str) -> list[float]:
    if not isinstance(written, Mapping) or set(written) != set(keys):
        raise InvalidRequest(f'{what} is an object with "{keys[0]}" and "{keys[1]}"')
    return [number(written, key, what) for key in keys]


def number(written: Mapping[str, Any], key: str, what: str) -> float:
    value = written.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRequest(f'"{key}" of {what} is not a finite number')
    return float(value)
