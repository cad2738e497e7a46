"""Coordinates on a map: poses in millimeters, or locations on the globe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from viam.proto.common import GeoPoint, GeoPose, Pose
from viam.proto.service.navigation import MapType, Position

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.motion.locators import has_orientation, parse_location, yaw
from cogwork.resource.messages.pose_proto import pose_from_proto
from cogwork.spatial import geodesy
from cogwork.spatial.orientation import from_ov_degrees
from cogwork.spatial.pose import ZERO
from cogwork.spatial.pose import Pose as SpatialPose

MapPoint = tuple[float, float]
"""Meters along x and y; on the globe, meters east and north of the origin."""

MAX_DISTANCE = 1_000_000.0
"""Maximum distance from the origin in meters, because a map of the globe is treated as flat."""


@dataclass(frozen=True, slots=True)
class MapPose:
    point: MapPoint
    yaw: float | None
    """Degrees counterclockwise from x. None means any heading."""


class MapCoordinates(Protocol):
    @property
    def map_type(self) -> MapType.ValueType: ...

    def parse_position(self, position: Position) -> MapPose:
        """Parse a position; raise InvalidRequest if it is invalid on this map."""

    def to_position(self, map_pose: MapPose) -> Position: ...

    def parse_point(self, value: object, description: str) -> MapPoint:
        """Parse a point in the geometry of a zone."""

    def to_meters(self, length: float) -> float:
        """Convert a length in the geometry of a zone, such as a radius, to meters."""


class LocalCoordinates:
    """Coordinates of a local map. A yaw of 0 faces along x, as on the map of a SLAM service."""

    map_type = MapType.MAP_TYPE_LOCAL

    def parse_position(self, position: Position) -> MapPose:
        if position.WhichOneof("value") != "pose":
            raise InvalidRequest(
                "a position on this map must be a pose in millimeters: the map has the type "
                "MAP_TYPE_LOCAL"
            )
        pose = pose_from_proto(position.pose)
        x, y, _ = pose.point
        heading = yaw(pose) if has_orientation(position.pose) else None
        return MapPose(_check_distance((x / 1000, y / 1000)), heading)

    def to_position(self, map_pose: MapPose) -> Position:
        x, y = map_pose.point
        return Position(pose=Pose(x=x * 1000, y=y * 1000, o_z=1, theta=map_pose.yaw or 0.0))

    def parse_point(self, value: object, description: str) -> MapPoint:
        x, y = _parse_numbers(value, description, "x", "y")
        return _check_distance((x / 1000, y / 1000))

    def to_meters(self, length: float) -> float:
        return length / 1000


@dataclass(frozen=True, slots=True)
class GpsCoordinates:
    origin: geodesy.GeoCoordinate

    @property
    def map_type(self) -> MapType.ValueType:
        return MapType.MAP_TYPE_GPS

    def parse_position(self, position: Position) -> MapPose:
        if position.WhichOneof("value") != "geo_pose":
            raise InvalidRequest(
                "a position on this map must be a geo pose: the map has the type MAP_TYPE_GPS"
            )
        geo_pose = position.geo_pose
        point = self._to_point(geo_pose.location.latitude, geo_pose.location.longitude)
        return MapPose(point, _yaw_of_geo_pose(geo_pose))

    def to_position(self, map_pose: MapPose) -> Position:
        geo_pose = self.origin.offset_by(*map_pose.point)
        return Position(
            geo_pose=GeoPose(
                location=GeoPoint(latitude=geo_pose.latitude, longitude=geo_pose.longitude),
                heading=(90 - (map_pose.yaw or 0.0)) % 360,
            )
        )

    def parse_point(self, value: object, description: str) -> MapPoint:
        return self._to_point(*_parse_numbers(value, description, "latitude", "longitude"))

    def to_meters(self, length: float) -> float:
        return length

    def _to_point(self, latitude: float, longitude: float) -> MapPoint:
        return _check_distance(self.origin.offset_to(parse_location(latitude, longitude)))


def _yaw_of_geo_pose(pose: GeoPose) -> float | None:
    """Return the yaw, or None if the pose has no orientation.

    A geo pose without rotation faces north, and the x axis of the map points east.
    """
    match pose.WhichOneof("orientation"):
        case "heading":
            if not math.isfinite(pose.heading):
                raise InvalidRequest(f"{pose.heading:g} is not a valid heading")
            return 90 - pose.heading
        case "orientation_vector":
            vector = pose.orientation_vector
            try:
                rotation = from_ov_degrees(vector.o_x, vector.o_y, vector.o_z, vector.theta)
            except ValueError as error:
                raise InvalidRequest(f"invalid orientation: {error}") from None
            return 90 + yaw(SpatialPose(ZERO, rotation))
    return None


def _check_distance(point: MapPoint) -> MapPoint:
    if not math.hypot(*point) <= MAX_DISTANCE:
        raise InvalidRequest(
            f"the position is more than {MAX_DISTANCE / 1000:g} km from the origin of the map"
        )
    return point


def _parse_numbers(value: object, description: str, *keys: str) -> list[float]:
    if not isinstance(value, Mapping) or set(value) != set(keys):
        raise InvalidRequest(f'{description} must be an object with "{keys[0]}" and "{keys[1]}"')
    return [parse_number(value, key, description) for key in keys]


def parse_number(mapping: Mapping[str, Any], key: str, description: str) -> float:
    value = mapping.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRequest(f'"{key}" of {description} is not a finite number')
    return float(value)
