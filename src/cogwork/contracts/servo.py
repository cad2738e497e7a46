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
    """Angle that the servo reaches quickly from its initial position, in degrees."""
    far: ClassVar[int] = 150
    """Angle that the servo takes several seconds to reach."""
    beyond: ClassVar[int] = 100_000
    """Angle outside the range of the servo."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.move(self.far)  # type: ignore[no-any-return]

    async def test_reaches_target(self, resource: Any) -> None:
        await resource.move(self.near)
        assert await resource.get_position() == pytest.approx(self.near, abs=1), (
            "it did not reach the target"
        )
        assert not await resource.is_moving(), "it reached the target but reports that it is moving"

    async def test_stays_where_stopped(self, resource: Any) -> None:
        async with moving(resource, self.move):
            await resource.stop()
            stopped = await resource.get_position()
        await asyncio.sleep(SHORT_DURATION)
        assert abs(await resource.get_position() - stopped) <= 1, (
            "it was stopped but continued to move"
        )

    async def test_refuses_angle_beyond_range(self, resource: Any) -> None:
        before = await resource.get_position()
        with pytest.raises(GRPCError) as refused:
            await resource.move(self.beyond)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await resource.get_position() == before

    async def test_geometries_are_known_or_refused(self, resource: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await resource.get_geometries(), list)
