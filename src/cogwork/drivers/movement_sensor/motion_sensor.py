"""A movement sensor that knows all it measures from the same moment."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

from viam.components.movement_sensor import GeoPoint, MovementSensor, Orientation, Vector3

from cogwork.drivers.movement_sensor.motion import Motion
from cogwork.drivers.shapeless import Shapeless


class MotionSensor(Shapeless, MovementSensor):
    @abc.abstractmethod
    async def motion(self) -> Motion:
        """The newest there is."""

    async def get_position(self, **_: Any) -> tuple[GeoPoint, float]:
        motion = await self.motion()
        return motion.point, motion.altitude

    async def get_linear_velocity(self, **_: Any) -> Vector3:
        return (await self.motion()).linear_velocity

    async def get_angular_velocity(self, **_: Any) -> Vector3:
        return (await self.motion()).angular_velocity

    async def get_linear_acceleration(self, **_: Any) -> Vector3:
        """Without the pull of the Earth, and without the jerks when the speed changes."""
        return (await self.motion()).linear_acceleration

    async def get_compass_heading(self, **_: Any) -> float:
        return (await self.motion()).compass_heading

    async def get_orientation(self, **_: Any) -> Orientation:
        return (await self.motion()).orientation

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
        return (await self.motion()).readings()

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return (await self.motion()).status()
