"""A snapshot of everything that a movement sensor measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viam.components.movement_sensor import GeoPoint, Orientation, Vector3

from cogwork.drivers.base.planar_motion import BasePose, Speed
from cogwork.spatial.geodesy import GeoCoordinate


@dataclass(frozen=True, slots=True)
class MovementSnapshot:
    """Measurements from one point in time. Vectors are in the sensor frame: x right, y forward, z
    up."""

    location: GeoCoordinate
    altitude: float
    compass_heading: float
    """Degrees clockwise from north, from 0 to less than 360."""
    linear_velocity: Vector3
    angular_velocity: Vector3
    linear_acceleration: Vector3

    @classmethod
    def from_base(
        cls, pose: BasePose, speed: Speed, origin: GeoCoordinate, heading: float, altitude: float
    ) -> MovementSnapshot:
        """Compute the snapshot of a base that started at the origin, facing `heading` degrees
        clockwise from north."""
        meters = math.hypot(pose.x, pose.y) / 1000
        bearing = heading + math.degrees(math.atan2(pose.x, pose.y))
        forward = speed.linear / 1000
        # The centripetal acceleration points to the inside of the turn.
        lateral = 0.0 - forward * math.radians(speed.angular)
        return cls(
            origin.destination(bearing, meters),
            altitude,
            (heading - pose.heading) % 360,
            Vector3(y=forward),
            Vector3(z=speed.angular),
            Vector3(x=lateral),
        )

    @property
    def geo_point(self) -> GeoPoint:
        return GeoPoint(latitude=self.location.latitude, longitude=self.location.longitude)

    @property
    def orientation(self) -> Orientation:
        """The orientation of an upright sensor.

        It is rotated counterclockwise from north by theta, an angle from -180 to 180 degrees.
        """
        return Orientation(o_z=1, theta=180 - (self.compass_heading + 180) % 360)

    def readings(self) -> Mapping[str, Any]:
        return {
            "position": self.geo_point,
            "altitude": self.altitude,
            "linear_velocity": self.linear_velocity,
            "angular_velocity": self.angular_velocity,
            "linear_acceleration": self.linear_acceleration,
            "compass": self.compass_heading,
            "orientation": self.orientation,
        }

    def status(self) -> Mapping[str, Any]:
        return {
            "latitude": self.location.latitude,
            "longitude": self.location.longitude,
            "altitude_m": self.altitude,
            "compass_heading_deg": self.compass_heading,
            "m_per_sec": self.linear_velocity.y,
            "degs_per_sec": self.angular_velocity.z,
        }
