"""What a power sensor keeps to."""

from __future__ import annotations

import math
from typing import Any

from viam.components.power_sensor.client import PowerSensorClient

from cogwork.contracts.contract import Contract, explained


class PowerSensorContract(Contract):
    """What it measures holds still for as long as a test."""

    api = "rdk:component:power_sensor"
    client = PowerSensorClient

    async def test_what_it_measures_is_a_number(self, it: Any) -> None:
        """What it cannot measure, it says."""
        with explained("get_voltage"):
            volts, is_ac = await it.get_voltage()
            assert math.isfinite(volts)
            assert isinstance(is_ac, bool)
        with explained("get_current"):
            amperes, is_ac = await it.get_current()
            assert math.isfinite(amperes)
            assert isinstance(is_ac, bool)
        with explained("get_power"):
            assert math.isfinite(await it.get_power())

    async def test_it_reads_something(self, it: Any) -> None:
        readings = await it.get_readings()
        assert readings, "no reading at all"
        assert set(readings) <= {"voltage", "current", "is_ac", "power"}
