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

    async def test_keeps_its_position(self, it: Any) -> None:
        count, _ = await it.get_number_of_positions()
        for position in (count - 1, 0):
            await it.set_position(position)
            assert await it.get_position() == position

    async def test_refuses_position_beyond_last(self, it: Any) -> None:
        count, _ = await it.get_number_of_positions()
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.set_position(count)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    async def test_labels_cover_all_positions_or_none(self, it: Any) -> None:
        count, labels = await it.get_number_of_positions()
        assert count >= 1
        assert len(labels) in (0, count)
