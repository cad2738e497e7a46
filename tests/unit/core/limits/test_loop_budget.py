from __future__ import annotations

import asyncio

import pytest
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock
from cogwork.core.limits.loop_budget import LoopBudget, LoopMeter


class TestLoopBudget:
    def test_pause_follows_from_the_share(self) -> None:
        assert LoopBudget(ManualClock(), share=0.5).spend(2.0) == pytest.approx(2.0)
        assert LoopBudget(ManualClock(), share=0.25).spend(2.0) == pytest.approx(6.0)

    def test_no_cost_means_no_pause(self) -> None:
        assert LoopBudget(ManualClock()).spend(0.0) == 0.0

    def test_several_users_share_the_budget(self) -> None:
        budget = LoopBudget(ManualClock(), share=0.5)
        pauses = [budget.spend(1.0) for _ in range(10)]
        assert pauses == sorted(pauses)
        assert pauses[-1] == pytest.approx(19.0)

    async def test_elapsed_time_repays_the_budget(self) -> None:
        clock = ManualClock()
        budget = LoopBudget(clock, share=0.5)
        budget.spend(5.0)
        await clock.advance(100)
        assert budget.spend(1.0) == pytest.approx(1.0)


class ComputingClock(ManualClock):
    """A clock that advances only while a coroutine computes."""

    def compute(self, seconds: float) -> None:
        self._now += seconds


class TestLoopMeter:
    async def test_only_computing_time_counts(self) -> None:
        clock = ComputingClock()
        meter = LoopMeter(clock)

        async def work() -> str:
            clock.compute(1)
            await clock.sleep(100)
            clock.compute(2)
            return "done"

        running = asyncio.ensure_future(meter.measure(work()))
        await clock.advance(200)
        assert await running == "done"
        assert meter.seconds == 3

    async def test_errors_and_cancellation_pass_through(self) -> None:
        async def fail() -> None:
            await run_others()
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await LoopMeter(ComputingClock()).measure(fail())

        cleaned = False

        async def wait() -> None:
            nonlocal cleaned
            try:
                await asyncio.Event().wait()
            finally:
                await run_others()
                cleaned = True

        waiting = asyncio.ensure_future(LoopMeter(ComputingClock()).measure(wait()))
        await run_others()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert cleaned

    async def test_timeout_inside_the_measured_work_is_delivered(self) -> None:
        async def work() -> str:
            try:
                async with asyncio.timeout(0.001):
                    await asyncio.Event().wait()
            except TimeoutError:
                return "late"
            return "in time"

        assert await LoopMeter(ComputingClock()).measure(work()) == "late"
