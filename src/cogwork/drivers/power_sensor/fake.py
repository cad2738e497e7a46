"""A fake power sensor that measures configured values and the current of a motor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.motor import Motor
from viam.components.power_sensor import PowerSensor

from cogwork.drivers.power_sensor.attributes import FakePowerSensorAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import find_dependency, logger_of


class FakePowerSensor(PowerSensor):
    def __init__(
        self, name: ResourceName, attributes: FakePowerSensorAttributes, motor: Motor | None
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._motor = motor

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakePowerSensorAttributes, dependencies: Dependencies
    ) -> FakePowerSensor:
        motor = (
            find_dependency(dependencies, attributes.motor)
            if attributes.motor is not None
            else None
        )
        return cls(name, attributes, motor)

    async def get_voltage(self, **_: Any) -> tuple[float, bool]:
        return self._attributes.voltage, self._attributes.is_ac

    async def get_current(self, **_: Any) -> tuple[float, bool]:
        return await self._total_current(), self._attributes.is_ac

    async def get_power(self, **_: Any) -> float:
        return self._attributes.voltage * await self._total_current()

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        volts, amperes = self._attributes.voltage, await self._total_current()
        return {
            "voltage": volts,
            "current": amperes,
            "is_ac": self._attributes.is_ac,
            "power": volts * amperes,
        }

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return await self.get_readings()

    async def _total_current(self) -> float:
        if self._motor is None:
            return self._attributes.current
        powered, power = await self._motor.is_powered()
        drawn = abs(power) * self._attributes.motor_current if powered else 0.0
        return self._attributes.current + drawn
