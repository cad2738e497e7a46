"""One computation for everybody who waits, never out of date, and never all of the time."""

from __future__ import annotations

import asyncio

import pytest

from cogwork.control.coalescing import Coalescer
from cogwork.core.clock import ManualClock


class Work:
    """Computes as long as it is told, on a manual clock."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.clock = ManualClock()
        self.seconds = seconds
        self.begun = 0
        self.now = "first"
        self.fault: Exception | None = None
        self.shared = Coalescer(self.compute, self.clock)

    async def compute(self) -> str:
        self.begun += 1
        seen = self.now
        if self.seconds:
            await self.clock.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault
        return seen

    def ask(self, clients: int) -> list[asyncio.Task[str]]:
        return [asyncio.ensure_future(self.shared.get()) for _ in range(clients)]


async def test_all_who_wait_get_the_same_result() -> None:
    work = Work(seconds=0.1)
    first = work.ask(1)
    await work.clock.settle()
    waiting = work.ask(50)
    await work.clock.advance(1)
    assert await asyncio.gather(*first, *waiting) == ["first"] * 51
    assert work.begun == 2


async def test_a_result_is_never_older_than_the_request() -> None:
    work = Work(seconds=0.1)
    before = work.ask(1)
    await work.clock.settle()
    work.now = "second"
    after = work.ask(1)
    await work.clock.advance(1)
    assert [await before[0], await after[0]] == ["first", "second"]


async def test_computations_take_a_fifth_of_the_time() -> None:
    work = Work(seconds=0.02)

    async def loop() -> None:
        while True:
            await work.shared.get()

    clients = [asyncio.ensure_future(loop()) for _ in range(6)]
    await work.clock.advance(10)
    assert 95 <= work.begun <= 101
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)


async def test_no_pause_lasts_long() -> None:
    work = Work(seconds=5)
    work.ask(1)
    await work.clock.advance(5)
    (second,) = work.ask(1)
    await work.clock.advance(6.01)
    assert second.done()


async def test_a_client_that_gives_up_takes_nothing_from_the_others() -> None:
    work = Work(seconds=0.1)
    leader, *others = work.ask(3)
    await work.clock.settle()
    leader.cancel()
    await work.clock.advance(2)
    assert await asyncio.gather(*others) == ["first", "first"]
    assert leader.cancelled()


async def test_a_failure_is_for_the_one_that_computed() -> None:
    work = Work(seconds=0.1)
    work.fault = OSError("no")
    first, second = work.ask(2)
    await work.clock.advance(0.1)
    work.fault = None
    await work.clock.advance(2)
    with pytest.raises(OSError, match="no"):
        await first
    assert await second == "first"


async def test_nothing_is_kept_when_nobody_waits() -> None:
    work = Work()
    assert await work.shared.get() == "first"
    assert work.shared._result is None
