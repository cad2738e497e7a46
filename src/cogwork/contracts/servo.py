"""The contract of servos."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.servo.client import ServoClient

from cogwork.contracts.contract import SHORT_DURATION, allow_refusal
from cogwork.contracts.moving import MovingContract, moving


class ServoContract(MovingContract):
    api = "rdk:component:servo"
    client = ServoClient

    near: ClassVar[int] = 10
    """Angle that it reaches quickly from its initial position, in degrees."""
    far: ClassVar[int] = 150
    """Angle that takes it several seconds to reach."""
    beyond: ClassVar[int] = 100_000
    """Angle outside its range."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.move(self.far)  # type: ignore[no-any-return]

    async def test_reaches_target(self, it: Any) -> None:
        await it.move(self.near)
        assert await it.get_position() == pytest.approx(self.near, abs=1), (
            "it did not reach the target"
        )
        assert not await it.is_moving(), "it reached the target but reports that it is moving"

    async def test_stays_where_stopped(self, it: Any) -> None:
        async with moving(it, self.move):
            await it.stop()
            stopped = await it.get_position()
        await asyncio.sleep(SHORT_DURATION)
        assert abs(await it.get_position() - stopped) <= 1, "it was stopped but continued to move"

    async def test_refuses_angle_beyond_range(self, it: Any) -> None:
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.move(self.beyond)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    async def test_geometries_are_known_or_refused(self, it: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await it.get_geometries(), list)
