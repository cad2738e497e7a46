"""What a movement sensor keeps to."""

from __future__ import annotations

import math
from typing import Any

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


class MovementSensorContract(Contract):
    api = "rdk:component:movement_sensor"
    client = MovementSensorClient

    async def test_it_measures_what_it_says_it_measures(self, it: Any) -> None:
        properties = await it.get_properties()
        for quantity in QUANTITIES:
            ask = getattr(it, f"get_{quantity}")
            if getattr(properties, f"{quantity}_supported"):
                await ask()
                continue
            with pytest.raises(GRPCError) as refused:
                await ask()
            assert refused.value.status is Status.UNIMPLEMENTED
            assert " " in (refused.value.message or "")

    async def test_it_is_somewhere_on_the_earth(self, it: Any) -> None:
        if (await it.get_properties()).position_supported:
            point, altitude = await it.get_position()
            assert -90 <= point.latitude <= 90
            assert -180 <= point.longitude <= 180
            assert math.isfinite(altitude)

    async def test_its_heading_is_on_the_compass(self, it: Any) -> None:
        if (await it.get_properties()).compass_heading_supported:
            assert 0 <= await it.get_compass_heading() < 360

    async def test_its_orientation_has_a_direction(self, it: Any) -> None:
        if (await it.get_properties()).orientation_supported:
            turned = await it.get_orientation()
            assert math.hypot(turned.o_x, turned.o_y, turned.o_z) == pytest.approx(1)

    async def test_it_reads_what_it_measures(self, it: Any) -> None:
        properties = await it.get_properties()
        readings = await it.get_readings()
        for quantity in QUANTITIES:
            key = "compass" if quantity == "compass_heading" else quantity
            assert (key in readings) == getattr(properties, f"{quantity}_supported")

    async def test_it_says_how_sure_it_is(self, it: Any) -> None:
        accuracy = await it.get_accuracy()
        assert all(math.isfinite(value) for value in accuracy.accuracy.values())
