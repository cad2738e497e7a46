"""What a movement sensor can know, all of it from the same moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viam.components.movement_sensor import GeoPoint, Orientation, Vector3

from cogwork.drivers.base.drive import Place, Speed
from cogwork.spatial.earth import Spot


@dataclass(frozen=True, slots=True)
class Motion:
    """Vectors are as the sensor has them: x to its right, y forward, z up."""

    spot: Spot
    altitude: float
    compass_heading: float
    """Degrees clockwise from north, from 0 up to 360."""
    linear_velocity: Vector3
    angular_velocity: Vector3
    linear_acceleration: Vector3

    @classmethod
    def of(
        cls, place: Place, speed: Speed, origin: Spot, heading: float, altitude: float
    ) -> Motion:
        """Of a base that first stood at the origin, and faced so many degrees clockwise from
        north."""
        metres = math.hypot(place.x, place.y) / 1000
        bearing = heading + math.degrees(math.atan2(place.x, place.y))
        forward = speed.linear / 1000
        # Whoever goes to the left is pulled to the left.
        aside = 0.0 - forward * math.radians(speed.angular)
        return cls(
            origin.along(bearing, metres),
            altitude,
            (heading - place.heading) % 360,
            Vector3(y=forward),
            Vector3(z=speed.angular),
            Vector3(x=aside),
        )

    @property
    def point(self) -> GeoPoint:
        return GeoPoint(latitude=self.spot.latitude, longitude=self.spot.longitude)

    @property
    def orientation(self) -> Orientation:
        """Upright, and turned counterclockwise from north by theta, which is up to 180 degrees."""
        return Orientation(o_z=1, theta=180 - (self.compass_heading + 180) % 360)

    def readings(self) -> Mapping[str, Any]:
        return {
            "position": self.point,
            "altitude": self.altitude,
            "linear_velocity": self.linear_velocity,
            "angular_velocity": self.angular_velocity,
            "linear_acceleration": self.linear_acceleration,
            "compass": self.compass_heading,
            "orientation": self.orientation,
        }

    def status(self) -> Mapping[str, Any]:
        return {
            "latitude": self.spot.latitude,
            "longitude": self.spot.longitude,
            "altitude_m": self.altitude,
            "compass_heading_deg": self.compass_heading,
            "m_per_sec": self.linear_velocity.y,
            "degs_per_sec": self.angular_velocity.z,
        }
