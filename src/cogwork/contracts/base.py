"""The contract of bases."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.base import Vector3
from viam.components.base.client import BaseClient

from cogwork.contracts.contract import SHORT_DURATION, TIMEOUT, assert_duration
from cogwork.contracts.moving import MovingContract, moving

ZERO_VECTOR = Vector3()


class BaseContract(MovingContract):
    api = "rdk:component:base"
    client = BaseClient

    mm_per_sec: ClassVar[float] = 200.0
    """A speed in millimeters per second at which the base drives safely."""
    degs_per_sec: ClassVar[float] = 90.0
    """A speed in degrees per second at which the base turns safely."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        distance = int(self.mm_per_sec * TIMEOUT)
        return resource.move_straight(distance, self.mm_per_sec)  # type: ignore[no-any-return]

    async def test_stops_at_target(self, resource: Any) -> None:
        distance = math.ceil(self.mm_per_sec * SHORT_DURATION)
        for sign in (1, -1):
            with assert_duration(distance / self.mm_per_sec):
                await resource.move_straight(sign * distance, self.mm_per_sec)
            assert not await resource.is_moving()
            with assert_duration(SHORT_DURATION):
                await resource.spin(sign * self.degs_per_sec * SHORT_DURATION, self.degs_per_sec)
            assert not await resource.is_moving()

    async def test_spins_and_stops(self, resource: Any) -> None:
        async with moving(resource, self._spin):
            await resource.stop()
            assert not await resource.is_moving()

    async def test_zero_distance_or_speed_stops(self, resource: Any) -> None:
        for command, amount, speed in (
            (resource.move_straight, 0, self.mm_per_sec),
            (resource.move_straight, 100, 0),
            (resource.spin, 90, 0),
        ):
            await resource.set_power(Vector3(y=0.3), ZERO_VECTOR)
            await command(amount, speed)
            assert not await resource.is_moving()

    @pytest.mark.parametrize(
        ("linear", "angular"),
        [
            (Vector3(y=0.3), ZERO_VECTOR),
            (ZERO_VECTOR, Vector3(z=-0.3)),
            (Vector3(y=-0.3), Vector3(z=0.3)),
        ],
    )
    async def test_moves_until_power_is_zero(
        self, resource: Any, linear: Vector3, angular: Vector3
    ) -> None:
        await resource.set_power(linear, angular)
        assert await resource.is_moving()
        await resource.set_power(ZERO_VECTOR, ZERO_VECTOR)
        assert not await resource.is_moving()

    async def test_moves_until_velocity_is_zero(self, resource: Any) -> None:
        await resource.set_velocity(Vector3(y=self.mm_per_sec), Vector3(z=self.degs_per_sec))
        assert await resource.is_moving()
        await resource.set_velocity(ZERO_VECTOR, ZERO_VECTOR)
        assert not await resource.is_moving()

    @pytest.mark.parametrize("power", [1.5, -1.5, float("nan")])
    async def test_refuses_power_out_of_range(self, resource: Any, power: float) -> None:
        for linear, angular in ((Vector3(y=power), ZERO_VECTOR), (ZERO_VECTOR, Vector3(z=power))):
            with pytest.raises(GRPCError) as refused:
                await resource.set_power(linear, angular)
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert not await resource.is_moving()

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    async def test_refuses_non_finite_numbers(self, resource: Any, number: float) -> None:
        for asking in (
            resource.move_straight(10, number),
            resource.spin(number, self.degs_per_sec),
            resource.spin(10, number),
            resource.set_velocity(Vector3(y=number), ZERO_VECTOR),
            resource.set_velocity(ZERO_VECTOR, Vector3(z=number)),
        ):
            with pytest.raises(GRPCError) as refused:
                await asking
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert not await resource.is_moving()

    async def test_newest_command_wins(self, resource: Any) -> None:
        async with moving(resource, self.move) as driving:
            await resource.set_power(ZERO_VECTOR, Vector3(z=0.3))
            with pytest.raises(GRPCError) as refused:
                await asyncio.wait_for(driving, TIMEOUT)
            assert refused.value.status is Status.ABORTED
            assert await resource.is_moving()
            await resource.stop()

    async def test_properties_are_lengths(self, resource: Any) -> None:
        properties = await resource.get_properties()
        assert properties.width_meters >= 0
        assert properties.turning_radius_meters >= 0
        assert properties.wheel_circumference_meters >= 0

    def _spin(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.spin(self.degs_per_sec * TIMEOUT, self.degs_per_sec)  # type: ignore[no-any-return]
