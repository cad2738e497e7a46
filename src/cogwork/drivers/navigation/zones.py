"""Zones: keepout areas and areas with a speed limit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viam.proto.service.navigation import Zone as ZoneMessage

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.navigation.coordinates import MapCoordinates, parse_number
from cogwork.drivers.navigation.planning import Keepout
from cogwork.drivers.navigation.polygon import Polygon
from cogwork.resource.messages.structs import to_struct

KEEPOUT = "keepout"
SPEED_LIMIT = "speed_limit"
MAX_CORNERS = 64

_FIELDS = {
    "circle": {"type", "center", "radius"},
    "box": {"type", "center", "size", "theta"},
    "polygon": {"type", "points"},
}
_MIN_AREA = 1e-6
"""Minimum area of a zone in square meters."""


@dataclass(frozen=True, slots=True)
class Clearance:
    """Distances in meters to keep from keepout zones."""

    radius: float
    """The radius of the machine."""
    margin: float = 0.0
    """The maximum distance of the machine from its path."""


@dataclass(frozen=True, slots=True)
class Zone:
    message: ZoneMessage
    geometry: Mapping[str, Any]
    polygon: Polygon
    keepout: Keepout
    """The area that paths avoid, if the type is keepout."""

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def type(self) -> str:
        return self.message.type

    @property
    def max_speed(self) -> float | None:
        return self.message.max_speed if self.message.HasField("max_speed") else None


def make_zone(
    name: str,
    kind: str,
    geometry: Mapping[str, Any],
    max_speed: float | None,
    coordinates: MapCoordinates,
    clearance: Clearance,
) -> Zone:
    check_zone_type(kind)
    if max_speed is None and kind == SPEED_LIMIT:
        raise InvalidRequest(f'zone "{name}" limits the speed, but "max_speed" is missing')
    if max_speed is not None and not 0 < max_speed < math.inf:
        raise InvalidRequest(
            f'"max_speed" of zone "{name}" must be above 0 meters per second, not {max_speed:g}'
        )
    polygon = _parse_geometry(f'the geometry of zone "{name}"', geometry, coordinates)
    message = ZoneMessage(name=name, type=kind, geometry=to_struct(geometry), max_speed=max_speed)
    keepout = Keepout.inflate(name, polygon, clearance.radius, clearance.margin)
    return Zone(message, geometry, polygon, keepout)


def check_zone_type(kind: str) -> None:
    if kind not in (KEEPOUT, SPEED_LIMIT):
        raise InvalidRequest(f'unknown zone type "{kind}"; use "{KEEPOUT}" or "{SPEED_LIMIT}"')


def _parse_geometry(
    description: str, geometry: Mapping[str, Any], coordinates: MapCoordinates
) -> Polygon:
    kind = geometry.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise InvalidRequest(f'"type" of {description} must be circle, box or polygon')
    unknown = sorted(set(geometry) - _FIELDS[kind])
    if unknown:
        raise InvalidRequest(
            f'{description} has the unknown field "{unknown[0]}"; the fields of a {kind} are '
            + ", ".join(sorted(_FIELDS[kind]))
        )
    polygon = _PARSERS[kind](description, geometry, coordinates)
    if polygon.area < _MIN_AREA:
        raise InvalidRequest(f"{description} has no area, or hardly any")
    return polygon


def _parse_circle(
    description: str, geometry: Mapping[str, Any], coordinates: MapCoordinates
) -> Polygon:
    center = coordinates.parse_point(geometry.get("center"), f'"center" of {description}')
    return Polygon.from_circle(center, _parse_length(geometry, "radius", description, coordinates))


def _parse_box(
    description: str, geometry: Mapping[str, Any], coordinates: MapCoordinates
) -> Polygon:
    center = coordinates.parse_point(geometry.get("center"), f'"center" of {description}')
    size = geometry.get("size")
    if not isinstance(size, Mapping):
        raise InvalidRequest(f'"size" of {description} must be an object with "x" and "y"')
    x, y = (
        _parse_length(size, axis, f'"size" of {description}', coordinates) for axis in ("x", "y")
    )
    theta = parse_number(geometry, "theta", description) if "theta" in geometry else 0.0
    return Polygon.from_box(center, (x, y), theta)


def _parse_polygon(
    description: str, geometry: Mapping[str, Any], coordinates: MapCoordinates
) -> Polygon:
    points = geometry.get("points")
    if not isinstance(points, list) or not 3 <= len(points) <= MAX_CORNERS:
        raise InvalidRequest(
            f'"points" of {description} must be a list of 3 to {MAX_CORNERS} points'
        )
    corners = [coordinates.parse_point(each, f"a point of {description}") for each in points]
    if any(one == other for one, other in zip(corners, corners[1:] + corners[:1], strict=True)):
        raise InvalidRequest(f"{description} has the same point twice in a row")
    return Polygon.from_corners(corners)


_PARSERS = {"circle": _parse_circle, "box": _parse_box, "polygon": _parse_polygon}


def _parse_length(
    mapping: Mapping[str, Any], key: str, description: str, coordinates: MapCoordinates
) -> float:
    length = coordinates.to_meters(parse_number(mapping, key, description))
    if length <= 0:
        raise InvalidRequest(f'"{key}" of {description} must be above 0')
    return length
