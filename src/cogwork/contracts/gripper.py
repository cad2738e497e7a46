"""What a gripper keeps to."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.gripper.client import GripperClient

from cogwork.contracts.contract import explained
from cogwork.contracts.kinematics import described_by
from cogwork.contracts.moving import MovingContract


class GripperContract(MovingContract):
    """It is open at first, and takes a while to close."""

    api = "rdk:component:gripper"
    client = GripperClient

    near: ClassVar[float] = 0.1
    """By how much its inputs change within a moment."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.grab()  # type: ignore[no-any-return]

    async def test_open_it_holds_nothing(self, it: Any) -> None:
        await it.open()
        assert not await it.is_moving()
        with explained("is_holding_something"):
            assert not (await it.is_holding_something()).is_holding_something

    async def test_what_it_grabs_it_holds_until_it_opens(self, it: Any) -> None:
        grabbed = await it.grab()
        assert not await it.is_moving()
        with explained("is_holding_something"):
            assert (await it.is_holding_something()).is_holding_something == grabbed
            await it.open()
            assert not (await it.is_holding_something()).is_holding_something

    async def test_it_goes_to_its_inputs(self, it: Any) -> None:
        with explained("go_to_inputs"):
            wanted = [value - self.near for value in await it.get_current_inputs()]
            await it.go_to_inputs(wanted)
            assert await it.get_current_inputs() == pytest.approx(wanted)
            assert not await it.is_moving()

    async def test_inputs_that_cannot_be_are_refused(self, it: Any) -> None:
        before = await self._inputs(it)
        for inputs in ([*before, 1.0], [math.nan for _ in before] or [math.nan]):
            with pytest.raises(GRPCError) as refused:
                await it.go_to_inputs(inputs)
            assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
            assert await self._inputs(it) == before

    async def test_its_kinematics_have_its_inputs(self, it: Any) -> None:
        with explained("get_kinematics"):
            chain = await described_by(it)
            chain.check(await self._inputs(it))

    async def test_its_shape_is_known_or_it_says_why_not(self, it: Any) -> None:
        with explained("get_geometries"):
            assert isinstance(await it.get_geometries(), list)

    async def _inputs(self, it: Any) -> list[float]:
        """None, where it does not tell."""
        with explained("get_current_inputs"):
            return list(await it.get_current_inputs())
        return []
