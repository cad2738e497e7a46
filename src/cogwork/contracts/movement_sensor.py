"""The contract of movement sensors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.movement_sensor.client import MovementSensorClient

from cogwork.contracts.contract import Contract

QUANTITIES = (
    "linear_acceleration",
    "angular_velocity",
    "orientation",
    "position",
    "compass_heading",
    "linear_velocity",
)
TOLERANCES: Mapping[str, float] = {
    "linear_acceleration": 2.0,
    "angular_velocity": 10.0,
    "orientation": 0.2,
    "position": 0.001,
    "compass_heading": 10.0,
    "linear_velocity": 0.5,
}
"""Noise of each measurement at rest, in its own units."""


class MovementSensorContract(Contract):
    api = "rdk:component:movement_sensor"
    client = MovementSensorClient

    at_rest: ClassVar[bool] = True
    """Whether the sensor is stationary during the test."""

    async def test_measurements_match_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        for quantity in QUANTITIES:
            ask = getattr(resource, f"get_{quantity}")
            if getattr(properties, f"{quantity}_supported"):
                numbers = _to_numbers(quantity, _drop_altitude(await ask()))
                assert all(map(math.isfinite, numbers)), f"its {quantity} is {numbers}"
                continue
            with pytest.raises(GRPCError) as refused:
                await ask()
            assert refused.value.status is Status.UNIMPLEMENTED
            assert " " in (refused.value.message or "")

    async def test_position_is_valid(self, resource: Any) -> None:
        if (await resource.get_properties()).position_supported:
            point, altitude = await resource.get_position()
            assert -90 <= point.latitude <= 90
            assert -180 <= point.longitude <= 180
            assert math.isfinite(altitude)

    async def test_compass_heading_is_valid(self, resource: Any) -> None:
        if (await resource.get_properties()).compass_heading_supported:
            assert 0 <= await resource.get_compass_heading() < 360

    async def test_orientation_is_unit_vector(self, resource: Any) -> None:
        if (await resource.get_properties()).orientation_supported:
            turned = await resource.get_orientation()
            assert math.hypot(turned.o_x, turned.o_y, turned.o_z) == pytest.approx(1)
            assert math.isfinite(turned.theta)

    async def test_readings_match_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        readings = await resource.get_readings()
        for quantity in QUANTITIES:
            assert (_reading_key(quantity) in readings) == getattr(
                properties, f"{quantity}_supported"
            )

    async def test_readings_match_measurements(self, resource: Any) -> None:
        if not self.at_rest:
            return
        properties = await resource.get_properties()
        for quantity in QUANTITIES:
            if not getattr(properties, f"{quantity}_supported"):
                continue
            measured = _drop_altitude(await getattr(resource, f"get_{quantity}")())
            read = (await resource.get_readings())[_reading_key(quantity)]
            # Skip values of different types: an orientation has several representations.
            if type(read) is not type(measured):
                continue
            here, there = _to_numbers(quantity, measured), _to_numbers(quantity, read)
            pairs = zip(here, there, strict=True)
            assert all(_difference(quantity, *pair) <= TOLERANCES[quantity] for pair in pairs), (
                f"its {quantity} is {here} but its readings contain {there}"
            )

    async def test_accuracy_is_finite(self, resource: Any) -> None:
        accuracy = await resource.get_accuracy()
        assert all(math.isfinite(value) for value in accuracy.accuracy.values())


def _reading_key(quantity: str) -> str:
    """Return the key of the quantity in the result of GetReadings."""
    return "compass" if quantity == "compass_heading" else quantity


def _drop_altitude(answer: Any) -> Any:
    """Return the answer of GetPosition without the altitude, which the readings list separately;
    return other answers as they are."""
    return answer[0] if isinstance(answer, tuple) else answer


def _to_numbers(quantity: str, value: Any) -> list[float]:
    """Return the numbers to compare. The theta of an orientation is left out: it is noisy if the
    sensor is upright."""
    match quantity:
        case "position":
            return [value.latitude, value.longitude]
        case "orientation":
            return [value.o_x, value.o_y, value.o_z]
        case "compass_heading":
            return [value]
        case _:
            return [value.x, value.y, value.z]


def _difference(quantity: str, one: float, other: float) -> float:
    """Return the absolute difference. Headings and longitudes wrap around."""
    if quantity in ("compass_heading", "position"):
        return abs((one - other + 180) % 360 - 180)
    return abs(one - other)
