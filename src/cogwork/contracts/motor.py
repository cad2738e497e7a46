"""The contract of motors."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.motor.client import MotorClient

from cogwork.contracts.contract import SHORT_DURATION, TIMEOUT, assert_duration
from cogwork.contracts.moving import MovingContract, moving

_TOLERANCE = 0.02
"""Tolerance of a position, in revolutions."""
_ATTEMPTS = 3


class MotorContract(MovingContract):
    api = "rdk:component:motor"
    client = MotorClient

    rpm: ClassVar[float] = 60.0
    """A speed at which the motor turns safely."""
    reverses: ClassVar[bool] = True
    """Whether the motor can turn backward."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.set_power(0.5)  # type: ignore[no-any-return]

    async def test_power_is_what_was_set(self, resource: Any) -> None:
        await resource.set_power(0.5)
        powered, power = await resource.is_powered()
        assert powered
        assert power == pytest.approx(0.5, abs=0.05)
        await resource.set_power(0)
        assert not (await resource.is_powered())[0]

    async def test_negative_power_is_backward(self, resource: Any) -> None:
        if not self.reverses:
            await self._assert_refused(resource, resource.set_power(-0.5))
            return
        await resource.set_power(-0.5)
        powered, power = await resource.is_powered()
        assert powered
        assert power == pytest.approx(-0.5, abs=0.05)
        await resource.stop()

    @pytest.mark.parametrize("power", [1.5, -1.5, float("nan")])
    async def test_refuses_power_out_of_range(self, resource: Any, power: float) -> None:
        await self._assert_refused(resource, resource.set_power(power))

    async def test_set_rpm_turns_until_stopped(self, resource: Any) -> None:
        if "SetRPM" in self.unsupported_methods:
            return
        for rpm in (self.rpm, -self.rpm) if self.reverses else (self.rpm,):
            await resource.set_rpm(rpm)
            assert await resource.is_moving()
            await self._assert_turns(resource, math.copysign(1, rpm))
            await resource.stop()
            assert not await resource.is_moving()

    async def test_reaches_target(self, resource: Any) -> None:
        if not (await resource.get_properties()).position_reporting:
            return
        await resource.reset_zero_position(0)
        assert await self._go_for(resource, self.rpm, 0.1, 0.1) == pytest.approx(
            0.1, abs=_TOLERANCE
        )
        for _ in range(_ATTEMPTS):
            await resource.go_to(self.rpm, 0)
            if await resource.get_position() == pytest.approx(0, abs=_TOLERANCE):
                break
        assert await resource.get_position() == pytest.approx(0, abs=_TOLERANCE)
        assert not await resource.is_moving()

    async def _go_for(
        self, resource: Any, rpm: float, revolutions: float, expected: float
    ) -> float:
        """Return how far the motor turned. Repeat inexact moves: on a busy computer a move may end
        late."""
        turned = 0.0
        for _ in range(_ATTEMPTS):
            start = await resource.get_position()
            await resource.go_for(rpm, revolutions)
            turned = await resource.get_position() - start
            if turned == pytest.approx(expected, abs=_TOLERANCE):
                break
        return turned

    async def test_go_for_direction_follows_signs(self, resource: Any) -> None:
        if not self.reverses or not (await resource.get_properties()).position_reporting:
            return
        for rpm, revolutions, turned in (
            (-self.rpm, 0.1, -0.1),
            (self.rpm, -0.1, -0.1),
            (-self.rpm, -0.1, 0.1),
        ):
            assert await self._go_for(resource, rpm, revolutions, turned) == pytest.approx(
                turned, abs=_TOLERANCE
            ), f"go_for at {rpm:g} rpm for {revolutions:g} revolutions"

    async def test_go_for_takes_expected_time(self, resource: Any) -> None:
        """Motors must pass whether or not they report their position."""
        if "GoFor" in self.unsupported_methods:
            return
        with assert_duration(SHORT_DURATION):
            await resource.go_for(self.rpm, self.rpm / 60 * SHORT_DURATION)
        assert not await resource.is_moving()

    async def test_newest_command_wins(self, resource: Any) -> None:
        if "GoFor" in self.unsupported_methods:
            return
        async with moving(resource, self._go_far) as going:
            await resource.set_power(0.5)
            with pytest.raises(GRPCError) as refused:
                await asyncio.wait_for(going, TIMEOUT)
            assert refused.value.status is Status.ABORTED
            assert await resource.is_moving()
            await resource.stop()

    async def test_unsupported_position_is_refused(self, resource: Any) -> None:
        if (await resource.get_properties()).position_reporting:
            return
        with pytest.raises(GRPCError) as refused:
            await resource.get_position()
        assert refused.value.status is Status.UNIMPLEMENTED

    def _go_far(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.go_for(self.rpm, self.rpm / 60 * TIMEOUT * 2)  # type: ignore[no-any-return]

    async def _assert_turns(self, resource: Any, way: float) -> None:
        """Check the direction of the motor by its position, or by its power if it reports no
        position."""
        if not (await resource.get_properties()).position_reporting:
            power = (await resource.is_powered())[1]
            assert power * way > 0, f"it turns in the wrong direction, with a power of {power:g}"
            return
        start = await resource.get_position()
        async with asyncio.timeout(TIMEOUT):
            while abs(turned := await resource.get_position() - start) < 0.02:
                pass
        assert turned * way > 0, f"it turned in the wrong direction, by {turned:g} revolutions"

    async def _assert_refused(self, resource: Any, call: Coroutine[Any, Any, Any]) -> None:
        with pytest.raises(GRPCError) as refused:
            await call
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert not await resource.is_moving()
