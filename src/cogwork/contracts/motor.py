"""What a motor keeps to."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.motor.client import MotorClient

from cogwork.contracts.moving import MovingContract


class MotorContract(MovingContract):
    api = "rdk:component:motor"
    client = MotorClient

    rpm: ClassVar[float] = 60.0
    """A speed at which it turns safely."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.set_power(0.5)  # type: ignore[no-any-return]

    async def test_power_is_what_was_set(self, it: Any) -> None:
        await it.set_power(0.5)
        powered, power = await it.is_powered()
        assert powered
        assert power == pytest.approx(0.5, abs=0.05)
        await it.set_power(0)
        assert not (await it.is_powered())[0]

    @pytest.mark.parametrize("power", [1.5, -1.5, float("nan")])
    async def test_power_beyond_all_there_is_refused(self, it: Any, power: float) -> None:
        with pytest.raises(GRPCError) as refused:
            await it.set_power(power)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert not await it.is_moving()

    async def test_it_goes_where_it_is_sent(self, it: Any) -> None:
        if not (await it.get_properties()).position_reporting:
            return
        await it.reset_zero_position(0)
        await it.go_for(self.rpm, 0.1)
        assert await it.get_position() == pytest.approx(0.1, abs=0.02)
        await it.go_to(self.rpm, 0)
        assert await it.get_position() == pytest.approx(0, abs=0.02)
        assert not await it.is_moving()

    async def test_without_a_position_it_says_so(self, it: Any) -> None:
        if (await it.get_properties()).position_reporting:
            return
        with pytest.raises(GRPCError) as refused:
            await it.get_position()
        assert refused.value.status is Status.UNIMPLEMENTED
