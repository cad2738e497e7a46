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
    """Axis positions that the gantry reaches quickly from home, in millimeters."""
    far: ClassVar[Sequence[float]] = (1000.0,)
    """Axis positions that the gantry takes several seconds to reach."""
    mm_per_sec: ClassVar[float] = 50.0
    """A speed that all axes support, in millimeters per second."""
    exact_mm: ClassVar[float] = 0.5
    """Tolerance of a position, in millimeters."""

    def move(self, resource: Any) -> Coroutine[Any, Any, Any]:
        return resource.move_to_position(list(self.far), [])  # type: ignore[no-any-return]

    async def test_reaches_target(self, resource: Any) -> None:
        await resource.move_to_position(list(self.near), [])
        assert await resource.get_position() == pytest.approx(list(self.near), abs=self.exact_mm)
        assert not await resource.is_moving()

    async def test_move_duration_matches_speed(self, resource: Any) -> None:
        start = await resource.get_position()
        ways = [abs(end - begin) for begin, end in zip(start, self.near, strict=True)]
        with assert_duration(max(ways) / self.mm_per_sec):
            await resource.move_to_position(list(self.near), [self.mm_per_sec for _ in self.near])
        assert not await resource.is_moving()

    async def test_position_changes_while_moving(self, resource: Any) -> None:
        start = await resource.get_position()
        async with moving(resource, self.move):
            until = time.monotonic() + TIMEOUT
            while self._is_at(await resource.get_position(), start):
                assert time.monotonic() < until, "it is moving but its position does not change"
            await resource.stop()
            stopped = await resource.get_position()
            assert not self._is_at(stopped, self.far), "it was stopped but still reached the target"

    async def test_homes_from_elsewhere(self, resource: Any) -> None:
        with allow_refusal("home") as outcome:
            assert await resource.home()
        if outcome.status is not Status.OK:
            return
        home = await resource.get_position()
        assert not self._is_at(self.near, home), "`near` is the home position; choose another"
        await resource.move_to_position(list(self.near), [])
        assert await resource.home()
        assert await resource.get_position() == pytest.approx(home, abs=self.exact_mm)
        assert not await resource.is_moving()

    async def test_every_axis_has_length_and_position(self, resource: Any) -> None:
        lengths = await resource.get_lengths()
        assert lengths
        assert all(length > 0 for length in lengths)
        assert len(await resource.get_position()) == len(lengths)

    async def test_refuses_invalid_positions(self, resource: Any) -> None:
        lengths = await resource.get_lengths()
        too_far = [length + 1000 for length in lengths]
        nowhere = [math.nan for _ in lengths]
        for positions in (too_far, nowhere, [*lengths, 0.0], []):
            await self._assert_refused(resource, positions, [])

    async def test_refuses_invalid_speeds(self, resource: Any) -> None:
        for speeds in ([math.nan for _ in self.near], [-1.0 for _ in self.near], [10.0] * 20):
            await self._assert_refused(resource, list(self.near), speeds)

    async def test_kinematics_match_lengths(self, resource: Any) -> None:
        with allow_refusal("get_kinematics"):
            chain = await fetch_kinematics(resource)
            ends = [joint.maximum - joint.minimum for joint in chain.joints]
            assert ends == pytest.approx(await resource.get_lengths())

    async def test_geometries_are_known_or_refused(self, resource: Any) -> None:
        with allow_refusal("get_geometries"):
            assert isinstance(await resource.get_geometries(), list)

    async def _assert_refused(
        self, resource: Any, positions: list[float], speeds: list[float]
    ) -> None:
        before = await resource.get_position()
        with pytest.raises(GRPCError) as refused:
            await resource.move_to_position(positions, speeds)
        assert refused.value.status is Status.INVALID_ARGUMENT
        assert await resource.get_position() == before

    def _is_at(self, positions: Sequence[float], those: Sequence[float]) -> bool:
        return list(positions) == pytest.approx(list(those), abs=self.exact_mm)
