"""What a servo keeps to."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.servo.client import ServoClient

from cogwork.contracts.contract import A_MOMENT, explained
from cogwork.contracts.moving import MovingContract, moving


class ServoContract(MovingContract):
    api = "rdk:component:servo"
    client = ServoClient

    near: ClassVar[int] = 10
    """An angle that it reaches within a moment from where it is at first, in degrees."""
    far: ClassVar[int] = 150
    """An angle that takes it some seconds."""
    beyond: ClassVar[int] = 100_000
    """An angle that it does not reach."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.move(self.far)  # type: ignore[no-any-return]

    async def test_it_goes_where_it_is_sent(self, it: Any) -> None:
        await it.move(self.near)
        assert await it.get_position() == pytest.approx(self.near, abs=1), "it went elsewhere"
        assert not await it.is_moving(), "it is where it was sent, and says that it moves"

    async def test_where_it_is_stopped_it_stays(self, it: Any) -> None:
        async with moving(it, self.move):
            await it.stop()
            stopped = await it.get_position()
        await asyncio.sleep(A_MOMENT)
        assert abs(await it.get_position() - stopped) <= 1, "it was stopped, and goes on"

    async def test_it_does_not_go_beyond_its_range(self, it: Any) -> None:
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.move(self.beyond)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    async def test_its_shape_is_known_or_it_says_why_not(self, it: Any) -> None:
        with explained("get_geometries"):
            assert isinstance(await it.get_geometries(), list)
