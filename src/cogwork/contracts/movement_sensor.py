"""What a movement sensor keeps to."""

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
WAVERS: Mapping[str, float] = {
    "linear_acceleration": 2.0,
    "angular_velocity": 10.0,
    "orientation": 0.2,
    "position": 0.001,
    "compass_heading": 10.0,
    "linear_velocity": 0.5,
}
"""How far two measurements may be apart, though it is at rest, in the units of each."""


class MovementSensorContract(Contract):
    api = "rdk:component:movement_sensor"
    client = MovementSensorClient

    at_rest: ClassVar[bool] = True
    """Whether it stays where it is while it is judged."""

    async def test_it_measures_what_it_says_it_measures(self, it: Any) -> None:
        properties = await it.get_properties()
        for quantity in QUANTITIES:
            ask = getattr(it, f"get_{quantity}")
            if getattr(properties, f"{quantity}_supported"):
                numbers = _numbers(quantity, _measured(await ask()))
                assert all(map(math.isfinite, numbers)), f"its {quantity} is {numbers}"
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
            assert math.isfinite(turned.theta)

    async def test_it_reads_what_it_measures(self, it: Any) -> None:
        properties = await it.get_properties()
        readings = await it.get_readings()
        for quantity in QUANTITIES:
            assert (_key(quantity) in readings) == getattr(properties, f"{quantity}_supported")

    async def test_it_reads_about_what_it_measures(self, it: Any) -> None:
        if not self.at_rest:
            return
        properties = await it.get_properties()
        for quantity in QUANTITIES:
            if not getattr(properties, f"{quantity}_supported"):
                continue
            measured = _measured(await getattr(it, f"get_{quantity}")())
            read = (await it.get_readings())[_key(quantity)]
            # There is more than one way to write down an orientation.
            if type(read) is not type(measured):
                continue
            here, there = _numbers(quantity, measured), _numbers(quantity, read)
            pairs = zip(here, there, strict=True)
            assert all(_apart(quantity, *pair) <= WAVERS[quantity] for pair in pairs), (
                f"its {quantity} is {here}, and its readings say {there}"
            )

    async def test_it_says_how_sure_it_is(self, it: Any) -> None:
        accuracy = await it.get_accuracy()
        assert all(math.isfinite(value) for value in accuracy.accuracy.values())


def _key(quantity: str) -> str:
    """What its readings call it."""
    return "compass" if quantity == "compass_heading" else quantity


def _measured(answer: Any) -> Any:
    """A position comes with an altitude, which its readings have beside it."""
    return answer[0] if isinstance(answer, tuple) else answer


def _numbers(quantity: str, value: Any) -> list[float]:
    """Of an orientation the direction: how far it is turned about one that is upright wavers."""
    match quantity:
        case "position":
            return [value.latitude, value.longitude]
        case "orientation":
            return [value.o_x, value.o_y, value.o_z]
        case "compass_heading":
            return [value]
        case _:
            return [value.x, value.y, value.z]


def _apart(quantity: str, one: float, other: float) -> float:
    """North is at both ends of the compass, and somewhere the last meridian is the first one."""
    if quantity in ("compass_heading", "position"):
        return abs((one - other + 180) % 360 - 180)
    return abs(one - other)
