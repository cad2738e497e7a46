"""The contract of power sensors."""

from __future__ import annotations

import math
from typing import Any

import pytest
from viam.components.power_sensor.client import PowerSensorClient

from cogwork.contracts.contract import Contract, allow_refusal

_REL_TOLERANCE, _ABS_TOLERANCE = 0.2, 0.1
"""The relative tolerance, and the absolute tolerance in volts, amperes or watts."""


class PowerSensorContract(Contract):
    """The contract of power sensors. The measured values must be constant during a test."""

    api = "rdk:component:power_sensor"
    client = PowerSensorClient

    async def test_measurements_are_finite(self, resource: Any) -> None:
        """Unsupported measurements must be refused."""
        with allow_refusal("get_voltage"):
            volts, is_ac = await resource.get_voltage()
            assert math.isfinite(volts)
            assert isinstance(is_ac, bool)
        with allow_refusal("get_current"):
            amperes, is_ac = await resource.get_current()
            assert math.isfinite(amperes)
            assert isinstance(is_ac, bool)
        with allow_refusal("get_power"):
            assert math.isfinite(await resource.get_power())

    async def test_has_readings(self, resource: Any) -> None:
        readings = await resource.get_readings()
        assert readings, "the sensor returned no readings"
        assert set(readings) <= {"voltage", "current", "is_ac", "power"}

    async def test_readings_match_measurements(self, resource: Any) -> None:
        readings, measured = await resource.get_readings(), await _measure(resource)
        for quantity in set(readings) & set(measured):
            assert readings[quantity] == _approx(measured[quantity]), (
                f'"{quantity}" of its readings differs from its measurement'
            )

    async def test_power_is_voltage_times_current(self, resource: Any) -> None:
        """For direct current, the power must be the product of voltage and current.

        Signs are ignored, as not all sensors report the direction of power.
        """
        measured = await _measure(resource)
        if {"voltage", "current", "power"} <= set(measured) and not measured["is_ac"]:
            watts = measured["voltage"] * measured["current"]
            assert abs(measured["power"]) == _approx(abs(watts)), (
                f"its power is {measured['power']:g} W but voltage times current is {watts:g} W"
            )


async def _measure(resource: Any) -> dict[str, float]:
    """Return all measurements by their keys in the readings."""
    measured: dict[str, float] = {}
    with allow_refusal("get_voltage"):
        measured["voltage"], measured["is_ac"] = await resource.get_voltage()
    with allow_refusal("get_current"):
        measured["current"], is_ac = await resource.get_current()
        assert measured.setdefault("is_ac", is_ac) == is_ac, "voltage and current disagree about AC"
    with allow_refusal("get_power"):
        measured["power"] = await resource.get_power()
    return measured


def _approx(value: float) -> Any:
    return (
        pytest.approx(value, rel=_REL_TOLERANCE, abs=_ABS_TOLERANCE)
        if not isinstance(value, bool)
        else value
    )
