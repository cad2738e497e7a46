"""What a power sensor keeps to."""

from __future__ import annotations

import math
from typing import Any

import pytest
from viam.components.power_sensor.client import PowerSensorClient

from cogwork.contracts.contract import Contract, explained

_REL, _ABS = 0.2, 0.1
"""How far two measurements of the same may be apart: a part of them, or volts, amperes or watts."""


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

    async def test_it_reads_what_it_measures(self, it: Any) -> None:
        readings, measured = await it.get_readings(), await _measured(it)
        for quantity in set(readings) & set(measured):
            assert readings[quantity] == _about(measured[quantity]), (
                f'its readings have another "{quantity}" than it measures'
            )

    async def test_its_power_is_its_voltage_times_its_current(self, it: Any) -> None:
        """Without the signs: not all that measure power say which way it flows. Of an alternating
        current some of it may be reactive."""
        measured = await _measured(it)
        if {"voltage", "current", "power"} <= set(measured) and not measured["is_ac"]:
            watts = measured["voltage"] * measured["current"]
            assert abs(measured["power"]) == _about(abs(watts)), (
                f"its power is {measured['power']:g} W, and its voltage times its current {watts:g}"
            )


async def _measured(it: Any) -> dict[str, float]:
    """All that it can measure, by what its readings call it."""
    measured: dict[str, float] = {}
    with explained("get_voltage"):
        measured["voltage"], measured["is_ac"] = await it.get_voltage()
    with explained("get_current"):
        measured["current"], is_ac = await it.get_current()
        assert measured.setdefault("is_ac", is_ac) == is_ac, "its voltage and its current disagree"
    with explained("get_power"):
        measured["power"] = await it.get_power()
    return measured


def _about(value: float) -> Any:
    return pytest.approx(value, rel=_REL, abs=_ABS) if not isinstance(value, bool) else value
