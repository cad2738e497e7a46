"""The contract of encoders."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.encoder.client import EncoderClient
from viam.proto.component.encoder import PositionType

from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.contracts.harness import Harness

TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES
_SETTLE_TIME = 0.05
"""Seconds without a tick after which the shaft counts as stopped."""
_TOLERANCE = 1.0
"""Noise of the position of a stopped shaft, in ticks, or in degrees if the encoder reports no
ticks."""


class EncoderContract(Contract):
    """The contract of encoders. The shaft must only move in `turn`."""

    api = "rdk:component:encoder"
    client = EncoderClient

    knows_way: ClassVar[bool] = True
    """Whether the encoder detects the direction; an encoder with a single signal only counts."""
    ticks_per_revolution: ClassVar[float | None] = None
    """Ticks per revolution, if the encoder reports both ticks and degrees."""

    async def turn(self, harness: Harness, way: int) -> None:
        """Turn the shaft forward if `way` is 1, or backward if it is -1, and then stop the shaft.

        Implement this method if the test can turn the shaft. Turn it by at least three ticks or
        degrees, and by less than half a revolution.
        """
        del harness, way
        pytest.skip("counting is not tested; implement `turn` to turn the shaft")

    async def test_position_types_match_properties(self, resource: Any) -> None:
        properties = await resource.get_properties()
        kinds = {
            TICKS: properties.ticks_count_supported,
            DEGREES: properties.angle_degrees_supported,
        }
        assert any(kinds.values()), "it supports no position type"
        for kind, supported in kinds.items():
            if supported:
                assert (await resource.get_position(kind))[1] == kind
                continue
            with pytest.raises(GRPCError) as refused:
                await resource.get_position(kind)
            assert refused.value.status is Status.UNIMPLEMENTED

    async def test_reports_default_position_type(self, resource: Any) -> None:
        _, kind = await resource.get_position()
        assert kind in (TICKS, DEGREES)

    async def test_refuses_unknown_position_type(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await resource.get_position(7)
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_degrees_are_below_360(self, resource: Any) -> None:
        if (await resource.get_properties()).angle_degrees_supported:
            assert 0 <= (await resource.get_position(DEGREES))[0] < 360

    async def test_reset_zeroes_ticks(self, resource: Any) -> None:
        if (await resource.get_properties()).ticks_count_supported:
            await resource.reset_position()
            assert (await resource.get_position(TICKS))[0] == pytest.approx(0, abs=1)

    async def test_counts_as_shaft_turns(self, harness: Harness, resource: Any) -> None:
        start = await _read_encoder(resource)
        await self.turn(harness, 1)
        there = await _wait_until_settled(resource)
        assert there.differs_from(start), "the shaft turned but the position did not change"
        self._assert_units_agree(start, there)
        await self.turn(harness, -1)
        back = await _wait_until_settled(resource)
        assert back.differs_from(there), "the shaft turned back but the position did not change"
        self._assert_units_agree(there, back)
        if self.knows_way:
            turned_back = there.distance_from(start) * back.distance_from(there) < 0
            assert turned_back, "the shaft turned back but the count increased"

    async def test_reset_clears_count(self, harness: Harness, resource: Any) -> None:
        if not (await resource.get_properties()).ticks_count_supported:
            return
        await resource.reset_position()
        await self.turn(harness, 1)
        counted = (await _wait_until_settled(resource)).ticks
        assert counted is not None
        assert abs(counted) > _TOLERANCE, f"the shaft turned but the count is {counted:g} ticks"
        await resource.reset_position()
        assert (await resource.get_position(TICKS))[0] == pytest.approx(0, abs=_TOLERANCE)

    def _assert_units_agree(self, start: EncoderReading, end: EncoderReading) -> None:
        """Check that ticks and degrees agree within two ticks: both may be rounded."""
        around = self.ticks_per_revolution
        if around is None or None in (start.ticks, start.degrees):
            return
        turned = end.ticks_from(start) / around * 360
        off = _wrap_degrees(end.degrees_from(start) - turned)
        assert off == pytest.approx(0, abs=2 / around * 360), (
            f"its ticks are {turned:g} degrees, from which its degrees differ by {off:g}"
        )


@dataclass(frozen=True, slots=True)
class EncoderReading:
    """A position in ticks and degrees; None for an unsupported position type."""

    ticks: float | None
    degrees: float | None

    def differs_from(self, start: EncoderReading) -> bool:
        return abs(self.distance_from(start)) > _TOLERANCE

    def distance_from(self, start: EncoderReading) -> float:
        """Return how far the shaft turned since `start`, in ticks, or in degrees if the encoder
        reports no ticks."""
        return self.ticks_from(start) if self.ticks is not None else self.degrees_from(start)

    def ticks_from(self, start: EncoderReading) -> float:
        assert self.ticks is not None
        assert start.ticks is not None
        return self.ticks - start.ticks

    def degrees_from(self, start: EncoderReading) -> float:
        assert self.degrees is not None
        assert start.degrees is not None
        return _wrap_degrees(self.degrees - start.degrees)


async def _read_encoder(resource: Any) -> EncoderReading:
    properties = await resource.get_properties()
    return EncoderReading(
        (await resource.get_position(TICKS))[0] if properties.ticks_count_supported else None,
        (await resource.get_position(DEGREES))[0] if properties.angle_degrees_supported else None,
    )


async def _wait_until_settled(resource: Any) -> EncoderReading:
    """Wait until the shaft has stopped; return the final position."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            before = await _read_encoder(resource)
            await asyncio.sleep(_SETTLE_TIME)
            seen = await _read_encoder(resource)
            if not seen.differs_from(before):
                return seen


def _wrap_degrees(degrees: float) -> float:
    """Wrap an angle into the range from -180 to 180."""
    return (degrees + 180) % 360 - 180
