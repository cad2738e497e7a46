"""What an encoder keeps to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.encoder.client import EncoderClient
from viam.proto.component.encoder import PositionType

from cogwork.contracts.bench import Bench
from cogwork.contracts.contract import PATIENCE, Contract

TICKS = PositionType.POSITION_TYPE_TICKS_COUNT
DEGREES = PositionType.POSITION_TYPE_ANGLE_DEGREES
_SETTLED = 0.05
"""Seconds without a tick, after which the shaft counts as standing."""
_STILL = 1.0
"""Ticks, or degrees if it has no ticks, by which what it says may waver though its shaft stands."""


class EncoderContract(Contract):
    """Its shaft stands still, but for `turn`."""

    api = "rdk:component:encoder"
    client = EncoderClient

    knows_way: ClassVar[bool] = True
    """Whether it knows which way its shaft turns: one of a single signal only counts."""
    ticks_per_revolution: ClassVar[float | None] = None
    """If it has both ticks and degrees, how many ticks are one revolution."""

    async def turn(self, bench: Bench, way: int) -> None:
        """Optional: turns the shaft by three ticks or degrees at least, and less than half a
        revolution, one way for 1 and the other for -1, and lets it stand again."""
        del bench, way
        pytest.skip("nobody sees it count: write `turn`, which turns its shaft")

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

    async def test_it_counts_as_its_shaft_turns(self, bench: Bench, it: Any) -> None:
        start = await _seen(it)
        await self.turn(bench, 1)
        there = await _settled(it)
        assert there.has_left(start), "its shaft turned, and it counted nothing"
        self._agree(start, there)
        await self.turn(bench, -1)
        back = await _settled(it)
        assert back.has_left(there), "its shaft turned back, and it counted nothing"
        self._agree(there, back)
        if self.knows_way:
            turned_back = there.since(start) * back.since(there) < 0
            assert turned_back, "its shaft turned back, and it counted on"

    async def test_a_count_is_gone_when_it_is_reset(self, bench: Bench, it: Any) -> None:
        if not (await it.get_properties()).ticks_count_supported:
            return
        await it.reset_position()
        await self.turn(bench, 1)
        counted = (await _settled(it)).ticks
        assert counted is not None
        assert abs(counted) > _STILL, f"its shaft turned, and it counted {counted:g} ticks"
        await it.reset_position()
        assert (await it.get_position(TICKS))[0] == pytest.approx(0, abs=_STILL)

    def _agree(self, start: Seen, end: Seen) -> None:
        """Within two ticks: it may round each of them."""
        around = self.ticks_per_revolution
        if around is None or None in (start.ticks, start.degrees):
            return
        turned = end.ticks_since(start) / around * 360
        off = _shortest(end.degrees_since(start) - turned)
        assert off == pytest.approx(0, abs=2 / around * 360), (
            f"its ticks say that it turned by {turned:g} degrees, and its degrees differ by {off:g}"
        )


@dataclass(frozen=True, slots=True)
class Seen:
    """Where the encoder says that it is; None is a kind of position that it does not have."""

    ticks: float | None
    degrees: float | None

    def has_left(self, start: Seen) -> bool:
        return abs(self.since(start)) > _STILL

    def since(self, start: Seen) -> float:
        """How far it turned, in whatever it counts."""
        return self.ticks_since(start) if self.ticks is not None else self.degrees_since(start)

    def ticks_since(self, start: Seen) -> float:
        assert self.ticks is not None
        assert start.ticks is not None
        return self.ticks - start.ticks

    def degrees_since(self, start: Seen) -> float:
        assert self.degrees is not None
        assert start.degrees is not None
        return _shortest(self.degrees - start.degrees)


async def _seen(it: Any) -> Seen:
    properties = await it.get_properties()
    return Seen(
        (await it.get_position(TICKS))[0] if properties.ticks_count_supported else None,
        (await it.get_position(DEGREES))[0] if properties.angle_degrees_supported else None,
    )


async def _settled(it: Any) -> Seen:
    """Ticks may be on their way for a moment."""
    async with asyncio.timeout(PATIENCE):
        while True:
            before = await _seen(it)
            await asyncio.sleep(_SETTLED)
            seen = await _seen(it)
            if not seen.has_left(before):
                return seen


def _shortest(degrees: float) -> float:
    """Along a circle, from -180 up to 180."""
    return (degrees + 180) % 360 - 180
