"""The contract of gantries."""

from __future__ import annotations

import math
import time
from collections.abc import Coroutine, Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.gantry.client import GantryClient

from cogwork.contracts.contract import TIMEOUT, allow_refusal, assert_duration
from cogwork.contracts.kinematics import fetch_kinematics
from cogwork.contracts.moving import MovingContract, moving


class GantryContract(MovingContract):
    api = "rdk:component:gantry"
    client = GantryClient

    near: ClassVar[Sequence[float]] = (10.0,)
    """Axis positions that it reaches quickly from home, in millimeters."""
    far: ClassVar[Sequence[float]] = (1000.0,)
    """Axis positions that take it several seconds to reach."""
    mm_per_sec: ClassVar[float] = 50.0
    """A speed that all axes support, in millimeters per second."""
    exact_mm: ClassVar[float] = 0.5
    """Tolerance of a position, in millimeters."""

    def move(self, it: Any) -> Coroutine[Any, Any, Any]:
        return it.move_to_position(list(self.far), [])  # type: ignore[no-any-return]

    async def test_reaches_target(self, it: Any) -> None:
        await it.move_to_position(list(self.near), [])
        assert await it.get_position() == pytest.approx(list(self.near), abs=self.exact_mm)
        assert not await it.is_moving()

    async def test_move_duration_matches_speed(self, it: Any) -> None:
        start = await it.get_position()
        ways = [abs(end - begin) for begin, end in zip(start, self.near, strict=True)]
        with assert_duration(max(ways) / self.mm_per_sec):
            await it.move_to_position(list(self.near), [self.mm_per_sec for _ in self.near])
        assert not await it.is_moving()

    async def test_position_changes_while_moving(self, it: Any) -> None:
        start = await it.get_position()
        async with moving(it, self.move):
            until = time.monotonic() + TIMEOUT
            while self._is_at(await it.get_position(), start):
                assert time.monotonic() < until, "it is moving but its position does not change"
            await it.stop()
            stopped = await it.get_position()
            assert not self._is_at(stopped, self.far), "it was stopped but still reached the target"

    async def test_homes_from_elsewhere(self, it: Any) -> None:
        with allow_refusal("home") as outcome:
            assert await it.home()
        if outcome.status is not Status.OK:
            return
        home = await it.get_position()
        assert not self._is_at(self.near, home), "`near` is the home position; choose another"
        await it.move_to_position(list(self.near), [])
        assert await it.home()
        assert await it.get_position() == pytest.approx(home, abs=self.exact_mm)
        assert not await it.is_moving()

    async def test_every_axis_has_length_and_position(self, it: Any) -> None:
        lengths = await it.get_lengths()
        assert lengths
        assert all(length > 0 for length in lengths)
        assert len(await it.get_position()) == len(lengths)

    async def test_refuses_invalid_positions(self, it: Any) -> None:
        lengths = await it.get_lengths()
        too_far = [length + 1000 for length in lengths]
        nowhere = [math.nan for _ in lengths]
        for positions in (too_far, nowhere, [*lengths, 0.0], []):
            await self._assert_refused(it, positions, [])

    async def test_refuses_invalid_speeds(self, it: Any) -> None:
        for speeds in ([math.nan for _ in self.near], [-1.0 for _ in self.near], [10.0] * 20):
            await self._assert_refused(it, list(self.near), speeds)

    async def test_kinematics_match_lengths(self, it: Any) -> None:
        with allow_refusal("get_kinematics"):
            chain = await fetch_kinematics(it)
            ends = [joint.maximum - joint.minimum for joint in chain.joints]
            assert ends == pytest.approx(await it.get_lengths())

    async def test_geometries_are_known_or_refused(self, it: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await it.get_geometries(), list)

    async def _assert_refused(self, it: Any, positions: list[float], speeds: list[float]) -> None:
        before = await it.get_position()
        with pytest.raises(GRPCError) as refused:
            await it.move_to_position(positions, speeds)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await it.get_position() == before

    def _is_at(self, positions: Sequence[float], those: Sequence[float]) -> bool:
        return list(positions) == pytest.approx(list(those), abs=self.exact_mm)
