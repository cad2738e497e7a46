"""The contract of sensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.sensor.client import SensorClient

from cogwork.contracts.contract import Contract


class SensorContract(Contract):
    api = "rdk:component:sensor"
    client = SensorClient

    async def test_has_readings(self, resource: Any) -> None:
        readings = await resource.get_readings()
        assert isinstance(readings, Mapping)
        assert readings, "the sensor returned no readings"
        assert all(isinstance(key, str) for key in readings)
