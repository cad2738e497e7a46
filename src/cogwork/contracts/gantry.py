"""What a gantry keeps to."""

from __future__ import annotations

import math
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.gantry.client import GantryClient

from cogwork.contracts.contract import PATIENCE, explained, lasting
from cogwork.contracts.kinematics import described_by
from cogwork.contracts.moving import MovingContract, moving


class GantryContract(MovingContract):
    api = "rdk:component:gantry"
    client = GantryClient

    near: ClassVar[Sequence[float]] = (10.0,)
    """Where its axes get within a moment from their home, in millimetres."""
    far: ClassVar[Sequence[float]] = (1000.0,)
    """Where they get within some seconds."""
    mm_per_sec: ClassVar[float] = 50.0
    """A speed that all its axes slide at."""
    exact_mm: ClassVar[float] = 0.5
    """How far off it may be."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.move_to_position(list(self.far), [])  # type: ignore[no-any-return]

    async def test_it_goes_where_it_is_sent(self, it: Any) -> None:
        await it.move_to_position(list(self.near), [])
        assert await it.get_position() == pytest.approx(list(self.near), abs=self.exact_mm)
        assert not await it.is_moving()

    async def test_it_takes_the_time_that_its_speed_says(self, it: Any) -> None:
        start = await it.get_position()
        ways = [abs(end - begin) for begin, end in zip(start, self.near, strict=True)]
        with lasting(max(ways) / self.mm_per_sec):
            await it.move_to_position(list(self.near), [self.mm_per_sec for _ in self.near])
        assert not await it.is_moving()

    async def test_its_position_changes_on_its_way(self, it: Any) -> None:
        start = await it.get_position()
        async with moving(it, self.move):
            until = time.monotonic() + PATIENCE
            while self._is_at(await it.get_position(), start):
                assert time.monotonic() < until, "it moves, and its position stays the same"
            await it.stop()
            stopped = await it.get_position()
            assert not self._is_at(stopped, self.far), (
                "it was stopped, and is at the end all the same"
            )

    async def test_it_comes_home_from_elsewhere(self, it: Any) -> None:
        with explained("home") as told:
            assert await it.home()
        if told.status is not Status.OK:
            return
        home = await it.get_position()
        assert not self._is_at(self.near, home), "it is home where it is near: name another place"
        await it.move_to_position(list(self.near), [])
        assert await it.home()
        assert await it.get_position() == pytest.approx(home, abs=self.exact_mm)
        assert not await it.is_moving()

    async def test_every_axis_has_a_length_and_a_position(self, it: Any) -> None:
        lengths = await it.get_lengths()
        assert lengths
        assert all(length > 0 for length in lengths)
        assert len(await it.get_position()) == len(lengths)

    async def test_positions_that_cannot_be_are_refused(self, it: Any) -> None:
        lengths = await it.get_lengths()
        too_far = [length + 1000 for length in lengths]
        nowhere = [math.nan for _ in lengths]
        for positions in (too_far, nowhere, [*lengths, 0.0], []):
            await self._refused(it, positions, [])

    async def test_speeds_that_cannot_be_are_refused(self, it: Any) -> None:
        for speeds in ([math.nan for _ in self.near], [-1.0 for _ in self.near], [10.0] * 20):
            await self._refused(it, list(self.near), speeds)

    async def test_its_kinematics_have_its_axes(self, it: Any) -> None:
        with explained("get_kinematics"):
            chain = await described_by(it)
            ends = [joint.maximum - joint.minimum for joint in chain.joints]
            assert ends == pytest.approx(await it.get_lengths())

    async def test_its_shape_is_known_or_it_says_why_not(self, it: Any) -> None:
        with explained("get_geometries"):
            assert isinstance(await it.get_geometries(), list)

    async def _refused(self, it: Any, positions: list[float], speeds: list[float]) -> None:
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.move_to_position(positions, speeds)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    def _is_at(self, positions: Sequence[float], those: Sequence[float]) -> bool:
        return list(positions) == pytest.approx(list(those), abs=self.exact_mm)
