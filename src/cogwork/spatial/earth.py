"""Places on the Earth: how far apart they are, and what is how far from one."""

from __future__ import annotations

import math
from dataclasses import dataclass

RADIUS = 6_371_008.8
"""The Earth's mean one, in metres."""


@dataclass(frozen=True, slots=True)
class Spot:
    """Degrees north of the equator, and east of Greenwich from -180 to 180."""

    latitude: float
    longitude: float

    @property
    def is_on_earth(self) -> bool:
        return -90 <= self.latitude <= 90 and -180 <= self.longitude <= 180

    def along(self, bearing: float, metres: float) -> Spot:
        """That far along a great circle that begins so many degrees clockwise from north."""
        toward, arc = math.radians(bearing), metres / RADIUS
        start = math.radians(self.latitude)
        across = math.sin(start) * math.cos(arc)
        north = across + math.cos(start) * math.sin(arc) * math.cos(toward)
        east = math.atan2(
            math.sin(toward) * math.sin(arc) * math.cos(start),
            math.cos(arc) - math.sin(start) * north,
        )
        latitude = math.degrees(math.asin(max(-1.0, min(1.0, north))))
        return Spot(latitude, _around(self.longitude + math.degrees(east)))

    def offset(self, there: Spot) -> tuple[float, float]:
        """Metres to the east and to the north, as on a plane that touches the Earth: for what is
        nearby."""
        turned = math.radians(_around(there.longitude - self.longitude))
        shrunk = _shrunk(self.latitude, there.latitude)
        return turned * shrunk * RADIUS, math.radians(there.latitude - self.latitude) * RADIUS

    def moved(self, east: float, north: float) -> Spot:
        """What `offset` leads to."""
        latitude = self.latitude + math.degrees(north / RADIUS)
        shrunk = max(_shrunk(self.latitude, latitude), 1e-9)
        return Spot(latitude, _around(self.longitude + math.degrees(east / (RADIUS * shrunk))))


def _shrunk(latitude: float, other: float) -> float:
    """A circle of latitude is shorter towards the poles: the one between the two counts."""
    return math.cos(math.radians((latitude + other) / 2))


def _around(longitude: float) -> float:
    return (longitude + 180) % 360 - 180
