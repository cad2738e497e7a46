"""A base class for movement sensors that measure everything in one snapshot."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from viam.components.movement_sensor import GeoPoint, MovementSensor, Orientation, Vector3

from cogwork.drivers.movement_sensor.snapshot import MovementSnapshot
from cogwork.drivers.no_geometry import NoGeometry


class SnapshotMovementSensor(NoGeometry, MovementSensor):
    @abc.abstractmethod
    async def take_snapshot(self) -> MovementSnapshot:
        """Return the newest snapshot."""

    async def get_position(self, **_: Any) -> tuple[GeoPoint, float]:
        snapshot = await self.take_snapshot()
        return snapshot.geo_point, snapshot.altitude

    async def get_linear_velocity(self, **_: Any) -> Vector3:
        return (await self.take_snapshot()).linear_velocity

    async def get_angular_velocity(self, **_: Any) -> Vector3:
        return (await self.take_snapshot()).angular_velocity

    async def get_linear_acceleration(self, **_: Any) -> Vector3:
        """Return the linear acceleration, without gravity.

        For a base, this is only the centripetal acceleration: changes of speed are ignored.
        """
        return (await self.take_snapshot()).linear_acceleration

    async def get_compass_heading(self, **_: Any) -> float:
        return (await self.take_snapshot()).compass_heading

    async def get_orientation(self, **_: Any) -> Orientation:
        return (await self.take_snapshot()).orientation

    async def get_properties(self, **_: Any) -> MovementSensor.Properties:
        return MovementSensor.Properties(
            linear_acceleration_supported=True,
            angular_velocity_supported=True,
            orientation_supported=True,
            position_supported=True,
            compass_heading_supported=True,
            linear_velocity_supported=True,
        )

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return (await self.take_snapshot()).readings()

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return (await self.take_snapshot()).status()
