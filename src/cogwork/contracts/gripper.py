"""The contract of grippers."""

from __future__ import annotations

import math
from collections.abc import Coroutine
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.gripper.client import GripperClient

from cogwork.contracts.contract import allow_refusal
from cogwork.contracts.kinematics import fetch_kinematics
from cogwork.contracts.moving import MovingContract


class GripperContract(MovingContract):
    """The contract of grippers. The gripper must be open initially, and take several seconds to
    close."""

    api = "rdk:component:gripper"
    client = GripperClient

    near: ClassVar[float] = 0.1
    """A change of the inputs that the gripper completes quickly."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.grab()  # type: ignore[no-any-return]

    async def test_holds_nothing_when_open(self, resource: Any) -> None:
        await resource.open()
        assert not await resource.is_moving()
        with allow_refusal("is_holding_something"):
            assert not (await resource.is_holding_something()).is_holding_something

    async def test_holds_until_opened(self, resource: Any) -> None:
        grabbed = await resource.grab()
        assert not await resource.is_moving()
        with allow_refusal("is_holding_something"):
            assert (await resource.is_holding_something()).is_holding_something == grabbed
            await resource.open()
            assert not (await resource.is_holding_something()).is_holding_something

    async def test_goes_to_inputs(self, resource: Any) -> None:
        with allow_refusal("go_to_inputs"):
            wanted = [value - self.near for value in await resource.get_current_inputs()]
            await resource.go_to_inputs(wanted)
            assert await resource.get_current_inputs() == pytest.approx(wanted)
            assert not await resource.is_moving()

    async def test_refuses_invalid_inputs(self, resource: Any) -> None:
        before = await self._get_inputs(resource)
        for inputs in ([*before, 1.0], [math.nan for _ in before] or [math.nan]):
            with pytest.raises(GRPCError) as refused:
                await resource.go_to_inputs(inputs)
            assert refused.value.status in (Status.INVALID_ARGUMENT, Status.UNIMPLEMENTED)
            assert await self._get_inputs(resource) == before

    async def test_kinematics_match_inputs(self, resource: Any) -> None:
        with allow_refusal("get_kinematics"):
            chain = await fetch_kinematics(resource)
            chain.check_inputs(await self._get_inputs(resource))

    async def test_geometries_are_known_or_refused(self, resource: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await resource.get_geometries(), list)

    async def _get_inputs(self, resource: Any) -> list[float]:
        """Return the inputs, or an empty list if the gripper does not report them."""
        with allow_refusal("get_current_inputs"):
            return list(await resource.get_current_inputs())
        return []
