"""What an encoder keeps to."""

from __future__ import annotations

from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.encoder.client import EncoderClient
from viam.proto.component.encoder import PositionType

from cogwork.contracts.contract import Contract

TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES


class EncoderContract(Contract):
    """Its shaft stands still."""

    api = "rdk:component:encoder"
    client = EncoderClient

    async def test_it_has_the_positions_that_it_says_it_has(self, it: Any) -> None:
        properties = await it.get_properties()
        kinds = {
            TICKS: properties.ticks_count_supported,
            DEGREES: properties.angle_degrees_supported,
        }
        assert any(kinds.values()), "it has no position at all"
        for kind, supported in kinds.items():
            if supported:
                assert (await it.get_position(kind))[1] == kind
                continue
            with pytest.raises(GRPCError) as refused:
                await it.get_position(kind)
            assert refused.value.status is Status.UNIMPLEMENTED

    async def test_asked_for_any_it_says_which_it_gave(self, it: Any) -> None:
        _, kind = await it.get_position()
        assert kind in (TICKS, DEGREES)

    async def test_a_kind_that_nobody_has_is_refused(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await it.get_position(7)
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_degrees_are_along_a_circle(self, it: Any) -> None:
        if (await it.get_properties()).angle_degrees_supported:
            assert 0 <= (await it.get_position(DEGREES))[0] < 360

    async def test_ticks_are_counted_from_where_it_was_reset(self, it: Any) -> None:
        if (await it.get_properties()).ticks_count_supported:
            await it.reset_position()
            assert (await it.get_position(TICKS))[0] == pytest.approx(0, abs=1)
