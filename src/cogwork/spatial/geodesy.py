"""Geographic coordinates: distances between them, and destinations from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

EARTH_RADIUS = 6_371_008.8
"""Mean radius of the Earth in meters."""


@dataclass(frozen=True, slots=True)
class GeoCoordinate:
    """A latitude in degrees north, and a longitude in degrees east from -180 to 180."""

    latitude: float
    longitude: float

    @property
    def is_valid(self) -> bool:
        return -90 <= self.latitude <= 90 and -180 <= self.longitude <= 180

    def destination(self, bearing: float, distance_m: float) -> GeoCoordinate:
        """Return the point at a distance along the great circle with the given initial bearing.

        The bearing is in degrees clockwise from north.
        """
        toward, arc = math.radians(bearing), distance_m / EARTH_RADIUS
        start = math.radians(self.latitude)
        across = math.sin(start) * math.cos(arc)
        north = across + math.cos(start) * math.sin(arc) * math.cos(toward)
        east = math.atan2(
            math.sin(toward) * math.sin(arc) * math.cos(start),
            math.cos(arc) - math.sin(start) * north,
        )
        latitude = math.degrees(math.asin(max(-1.0, min(1.0, north))))
        return GeoCoordinate(latitude, _wrap_longitude(self.longitude + math.degrees(east)))

    def offset_to(self, other: GeoCoordinate) -> tuple[float, float]:
        """Return the offset in meters to the east and north, on a local tangent plane.

        The approximation holds for nearby points.
        """
        angle = math.radians(_wrap_longitude(other.longitude - self.longitude))
        scale = _longitude_scale(self.latitude, other.latitude)
        return angle * scale * EARTH_RADIUS, math.radians(
            other.latitude - self.latitude
        ) * EARTH_RADIUS

    def offset_by(self, east: float, north: float) -> GeoCoordinate:
        """Return the point at an offset in meters; the inverse of `offset_to`."""
        latitude = self.latitude + math.degrees(north / EARTH_RADIUS)
        scale = max(_longitude_scale(self.latitude, latitude), 1e-9)
        return GeoCoordinate(
            latitude, _wrap_longitude(self.longitude + math.degrees(east / (EARTH_RADIUS * scale)))
        )


def _longitude_scale(latitude: float, other: float) -> float:
    """Return the length of the circle of latitude halfway between two latitudes, relative to the
    equator."""
    return math.cos(math.radians((latitude + other) / 2))


def _wrap_longitude(longitude: float) -> float:
    return (longitude + 180) % 360 - 180
