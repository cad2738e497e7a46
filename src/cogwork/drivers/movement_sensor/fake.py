"""A fake movement sensor that moves with a fake base or stays in place."""

from __future__ import annotations

from typing import Any

from viam.components.movement_sensor import MovementSensor, Vector3

from cogwork.core.errors import Unsupported
from cogwork.drivers.base.protocols import HasOdometry
from cogwork.drivers.movement_sensor.attributes import (
    FakeMovementSensorAttributes,
    VectorAttributes,
)
from cogwork.drivers.movement_sensor.snapshot import MovementSnapshot
from cogwork.drivers.movement_sensor.snapshot_sensor import SnapshotMovementSensor
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of
from cogwork.spatial.geodesy import GeoCoordinate

_NMEA_FIX_SIMULATED = 8
"""The fix quality that NMEA 0183 defines for simulators."""


class FakeMovementSensor(SnapshotMovementSensor):
    def __init__(
        self,
        name: ResourceName,
        attributes: FakeMovementSensorAttributes,
        base: HasOdometry | None,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._origin = GeoCoordinate(attributes.origin.latitude, attributes.origin.longitude)
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
        base = find_dependency(dependencies, attributes.base)
        if not isinstance(base, HasOdometry):
            raise Unsupported(
                f'movement sensor "{name.name}" cannot follow base "{attributes.base}", which does '
                'not report its pose: use a fake base, or remove "base"'
            )
        return cls(name, attributes, base)

    async def get_accuracy(self, **_: Any) -> MovementSensor.Accuracy:
        """Return perfect accuracy."""
        return MovementSensor.Accuracy(
            position_hdop=0,
            position_vdop=0,
            position_nmea_gga_fix=_NMEA_FIX_SIMULATED,
            compass_degrees_error=0,
        )

    async def take_snapshot(self) -> MovementSnapshot:
        attributes = self._attributes
        if self._base is not None:
            odometry = await self._base.odometry()
            return MovementSnapshot.from_base(
                odometry.pose,
                odometry.speed,
                self._origin,
                attributes.compass_heading,
                attributes.altitude,
            )
        return MovementSnapshot(
            self._origin,
            attributes.altitude,
            attributes.compass_heading,
            _to_vector(attributes.linear_velocity),
            _to_vector(attributes.angular_velocity),
            _to_vector(attributes.linear_acceleration),
        )


def _to_vector(vector: VectorAttributes) -> Vector3:
    return Vector3(x=vector.x, y=vector.y, z=vector.z)
