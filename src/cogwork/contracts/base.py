"""What a base keeps to."""

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

from cogwork.contracts.contract import A_MOMENT, PATIENCE, lasting
from cogwork.contracts.moving import MovingContract, moving

STILL = Vector3()


class BaseContract(MovingContract):
    api = "rdk:component:base"
    client = BaseClient

    mm_per_sec: ClassVar[float] = 200.0
    """A speed at which it drives safely."""
    degs_per_sec: ClassVar[float] = 90.0
    """A speed at which it turns safely."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        distance = int(self.mm_per_sec * PATIENCE)
        return it.move_straight(distance, self.mm_per_sec)  # type: ignore[no-any-return]

    async def test_it_comes_to_rest_where_it_is_sent(self, it: Any) -> None:
        distance = math.ceil(self.mm_per_sec * A_MOMENT)
        for sign in (1, -1):
            with lasting(distance / self.mm_per_sec):
                await it.move_straight(sign * distance, self.mm_per_sec)
            assert not await it.is_moving()
            with lasting(A_MOMENT):
                await it.spin(sign * self.degs_per_sec * A_MOMENT, self.degs_per_sec)
            assert not await it.is_moving()

    async def test_it_spins_and_stops(self, it: Any) -> None:
        async with moving(it, self._spin):
            await it.stop()
            assert not await it.is_moving()

    async def test_without_a_distance_or_a_speed_it_stops(self, it: Any) -> None:
        for command, amount, speed in (
            (it.move_straight, 0, self.mm_per_sec),
            (it.move_straight, 100, 0),
            (it.spin, 90, 0),
        ):
            await it.set_power(Vector3(y=0.3), STILL)
            await command(amount, speed)
            assert not await it.is_moving()

    @pytest.mark.parametrize(
        ("linear", "angular"),
        [(Vector3(y=0.3), STILL), (STILL, Vector3(z=-0.3)), (Vector3(y=-0.3), Vector3(z=0.3))],
    )
    async def test_power_moves_it_until_there_is_none(
        self, it: Any, linear: Vector3, angular: Vector3
    ) -> None:
        await it.set_power(linear, angular)
        assert await it.is_moving()
        await it.set_power(STILL, STILL)
        assert not await it.is_moving()

    async def test_a_velocity_moves_it_until_there_is_none(self, it: Any) -> None:
        await it.set_velocity(Vector3(y=self.mm_per_sec), Vector3(z=self.degs_per_sec))
        assert await it.is_moving()
        await it.set_velocity(STILL, STILL)
        assert not await it.is_moving()

    @pytest.mark.parametrize("power", [1.5, -1.5, float("nan")])
    async def test_power_beyond_all_there_is_refused(self, it: Any, power: float) -> None:
        for linear, angular in ((Vector3(y=power), STILL), (STILL, Vector3(z=power))):
            with pytest.raises(GRPCError) as refused:
                await it.set_power(linear, angular)
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert not await it.is_moving()

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    async def test_what_is_no_number_is_refused(self, it: Any, number: float) -> None:
        for asking in (
            it.move_straight(10, number),
            it.spin(number, self.degs_per_sec),
            it.spin(10, number),
            it.set_velocity(Vector3(y=number), STILL),
            it.set_velocity(STILL, Vector3(z=number)),
        ):
            with pytest.raises(GRPCError) as refused:
                await asking
            assert refused.value.status is Status.INVALID_ARGUMENT
            assert not await it.is_moving()

    async def test_the_newest_command_has_it(self, it: Any) -> None:
        async with moving(it, self.move) as driving:
            await it.set_power(STILL, Vector3(z=0.3))
            with pytest.raises(GRPCError) as refused:
                await asyncio.wait_for(driving, PATIENCE)
            assert refused.value.status is Status.ABORTED
            assert await it.is_moving()
            await it.stop()

    async def test_its_properties_are_lengths(self, it: Any) -> None:
        properties = await it.get_properties()
        assert properties.width_meters >= 0
        assert properties.turning_radius_meters >= 0
        assert properties.wheel_circumference_meters >= 0

    def _spin(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.spin(self.degs_per_sec * PATIENCE, self.degs_per_sec)  # type: ignore[no-any-return]
