"""One shared computation for all waiting callers, never stale and with pauses."""

from __future__ import annotations

import asyncio

import pytest

from cogwork.control.coalescing import Coalescer
from cogwork.core.clock import ManualClock


class SlowComputation:
    """A computation of a given duration on a manual clock."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.clock = ManualClock()
        self.seconds = seconds
        self.starts = 0
        self.now = "first"
        self.fault: Exception | None = None
        self.shared = Coalescer(self.compute, self.clock)

    async def compute(self) -> str:
        self.starts += 1
        seen = self.now
        if self.seconds:
            await self.clock.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault
        return seen

    def request(self, clients: int) -> list[asyncio.Task[str]]:
        return [asyncio.ensure_future(self.shared.get()) for _ in range(clients)]


async def test_waiting_callers_share_one_result() -> None:
    work = SlowComputation(seconds=0.1)
    first = work.request(1)
    await work.clock.settle()
    waiting = work.request(50)
    await work.clock.advance(1)
    assert await asyncio.gather(*first, *waiting) == ["first"] * 51
    assert work.starts == 2


async def test_result_is_never_older_than_the_request() -> None:
    work = SlowComputation(seconds=0.1)
    before = work.request(1)
    await work.clock.settle()
    work.now = "second"
    after = work.request(1)
    await work.clock.advance(1)
    assert [await before[0], await after[0]] == ["first", "second"]


async def test_computations_take_at_most_a_fifth_of_the_time() -> None:
    work = SlowComputation(seconds=0.02)

    async def loop() -> None:
        while True:
            await work.shared.get()

    clients = [asyncio.ensure_future(loop()) for _ in range(6)]
    await work.clock.advance(10)
    assert 95 <= work.starts <= 101
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)


async def test_pause_between_computations_is_bounded() -> None:
    work = SlowComputation(seconds=5)
    work.request(1)
    await work.clock.advance(5)
    (second,) = work.request(1)
    await work.clock.advance(6.01)
    assert second.done()


async def test_cancelled_caller_does_not_affect_the_others() -> None:
    work = SlowComputation(seconds=0.1)
    leader, *others = work.request(3)
    await work.clock.settle()
    leader.cancel()
    await work.clock.advance(2)
    assert await asyncio.gather(*others) == ["first", "first"]
    assert leader.cancelled()


async def test_failure_reaches_only_the_computing_caller() -> None:
    work = SlowComputation(seconds=0.1)
    work.fault = OSError("no")
    first, second = work.request(2)
    await work.clock.advance(0.1)
    work.fault = None
    await work.clock.advance(2)
    with pytest.raises(OSError, match="no"):
        await first
    assert await second == "first"


async def test_result_is_not_kept_without_waiters() -> None:
    work = SlowComputation()
    assert await work.shared.get() == "first"
    assert work.shared._result is None
