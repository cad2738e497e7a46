"""A movement sensor that rides on a fake base, or stays where it is."""

from __future__ import annotations

from typing import Any

from viam.components.movement_sensor import MovementSensor, Vector3

from cogwork.core.errors import Unsupported
from cogwork.drivers.base.tracked import Tracked
from cogwork.drivers.movement_sensor.attributes import (
    FakeMovementSensorAttributes,
    VectorAttributes,
)
from cogwork.drivers.movement_sensor.motion import Motion
from cogwork.drivers.movement_sensor.motion_sensor import MotionSensor
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named
from cogwork.spatial.earth import Spot

_SIMULATED = 8
"""The quality of a fix that NMEA 0183 has for simulators."""


class FakeMovementSensor(MotionSensor):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeMovementSensorAttributes,
        base: Tracked | None,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._origin = Spot(attributes.origin.latitude, attributes.origin.longitude)
        self._base = base

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeMovementSensorAttributes,
        dependencies: Dependencies,
    ) -> FakeMovementSensor:
        if attributes.base is None:
            return cls(name, attributes, None)
        base = named(dependencies, attributes.base)
        if not isinstance(base, Tracked):
            raise Unsupported(
                f'movement sensor "{name.name}" cannot follow base "{attributes.base}", which does '
                'not tell where it is: name a fake base, or leave "base" out'
            )
        return cls(name, attributes, base)

    async def get_accuracy(self, **_: Any) -> MovementSensor.Accuracy:
        """It makes no mistakes."""
        return MovementSensor.Accuracy(
            position_hdop=0,
            position_vdop=0,
            position_nmea_gga_fix=_SIMULATED,
            compass_degrees_error=0,
        )

    async def motion(self) -> Motion:
        its = self._attributes
        if self._base is not None:
            seen = await self._base.odometry()
            return Motion.of(
                seen.place, seen.speed, self._origin, its.compass_heading, its.altitude
            )
        return Motion(
            self._origin,
            its.altitude,
            its.compass_heading,
            _vector(its.linear_velocity),
            _vector(its.angular_velocity),
            _vector(its.linear_acceleration),
        )


def _vector(given: VectorAttributes) -> Vector3:
    return Vector3(x=given.x, y=given.y, z=given.z)
