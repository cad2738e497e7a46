"""The position of a vehicle, measured with a movement sensor."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from math import isfinite
from typing import Any, TypeVar

from viam.components.movement_sensor import MovementSensor

from cogwork.core.clock import Clock
from cogwork.core.errors import Unsupported
from cogwork.drivers.navigation.coordinates import MapPose
from cogwork.drivers.navigation.vehicle import NotLocalized
from cogwork.spatial.geodesy import GeoCoordinate
from cogwork.wire.table.status import status_of

POSITION_TIMEOUT = 2.0
"""Timeout in seconds for the position and the heading."""

T = TypeVar("T")


class SensorLocator:
    """Reads poses on a map with x to the east and y to the north of its origin.

    The sensor is assumed to be at the center of the vehicle.
    """

    def __init__(
        self, name: str, sensor: MovementSensor, origin: GeoCoordinate, clock: Clock
    ) -> None:
        self._name = name
        self._sensor = sensor
        self._origin = origin
        self._clock = clock

    @classmethod
    async def new(
        cls, name: str, sensor: MovementSensor, origin: GeoCoordinate | None, clock: Clock
    ) -> SensorLocator:
        """Check the sensor. If no origin is configured, the current position is the origin."""
        locator = cls(name, sensor, origin or GeoCoordinate(0, 0), clock)
        await locator._check_properties()
        if origin is None:
            locator._origin = await locator._with_deadline(locator._read_location())
        return locator

    @property
    def origin(self) -> GeoCoordinate:
        return self._origin

    async def locate(self) -> MapPose:
        """Return the current pose; raise NotLocalized with the reason if it is unknown."""
        return await self._with_deadline(self._read_pose())

    async def _check_properties(self) -> None:
        properties = await self._with_deadline(self._sensor.get_properties())
        for supported, quantity in (
            (properties.position_supported, "position"),
            (properties.compass_heading_supported, "compass heading"),
        ):
            if not supported:
                raise Unsupported(
                    f'movement sensor "{self._name}" does not report its {quantity}: navigation '
                    "needs a sensor that reports a position and a compass heading"
                )

    async def _read_pose(self) -> MapPose:
        point = self._origin.offset_to(await self._read_location())
        heading = await self._sensor.get_compass_heading(timeout=POSITION_TIMEOUT)
        if not isfinite(heading):
            raise NotLocalized(f'movement sensor "{self._name}" does not know its heading')
        return MapPose(point, 90 - heading)

    async def _read_location(self) -> GeoCoordinate:
        position, _ = await self._sensor.get_position(timeout=POSITION_TIMEOUT)
        location = GeoCoordinate(position.latitude, position.longitude)
        if not location.is_valid:
            raise NotLocalized(f'movement sensor "{self._name}" does not know its position')
        return location

    async def _with_deadline(self, reading: Coroutine[Any, Any, T]) -> T:
        """Await the sensor; any failure means that the position is unknown."""
        task = asyncio.ensure_future(reading)
        try:
            await self._clock.wait([task], POSITION_TIMEOUT)
            if task.done():
                return task.result()
        except NotLocalized:
            raise
        except Exception as error:
            _, message = status_of(error, "reading the position")
            raise NotLocalized(f'movement sensor "{self._name}" failed: {message}') from error
        finally:
            task.cancel()
        raise NotLocalized(
            f'movement sensor "{self._name}" did not answer within {POSITION_TIMEOUT:g} s'
        )
