"""The contract of switches."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.switch.client import SwitchClient

from cogwork.contracts.contract import Contract


class SwitchContract(Contract):
    api = "rdk:component:switch"
    client = SwitchClient

    async def test_keeps_its_position(self, resource: Any) -> None:
        count, _ = await resource.get_number_of_positions()
        for position in (count - 1, 0):
            await resource.set_position(position)
            assert await resource.get_position() == position

    async def test_refuses_position_beyond_last(self, resource: Any) -> None:
        count, _ = await resource.get_number_of_positions()
        before = await resource.get_position()
        with pytest.raises(GRPCError) as refused:
            await resource.set_position(count)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await resource.get_position() == before

    async def test_labels_cover_all_positions_or_none(self, resource: Any) -> None:
        count, labels = await resource.get_number_of_positions()
        assert count >= 1
        assert len(labels) in (0, count)
