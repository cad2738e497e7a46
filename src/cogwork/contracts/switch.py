"""What a switch keeps to."""

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

    async def test_it_stays_where_it_is_put(self, it: Any) -> None:
        count, _ = await it.get_number_of_positions()
        for position in (count - 1, 0):
            await it.set_position(position)
            assert await it.get_position() == position

    async def test_a_position_beyond_the_last_is_refused(self, it: Any) -> None:
        count, _ = await it.get_number_of_positions()
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.set_position(count)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    async def test_every_position_is_called_something_or_none_is(self, it: Any) -> None:
        count, labels = await it.get_number_of_positions()
        assert count >= 1
        assert len(labels) in (0, count)
