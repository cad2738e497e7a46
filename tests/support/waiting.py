"""Wait in tests: for a condition, with a deadline; or for time, where time is what is tested.

A lint rule keeps other sleeps out of the tests.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from cogwork.core.clock import ManualClock

T = TypeVar("T")

DEADLINE = 60.0
"""Far more than any condition should need, on a slow computer too."""


async def wait_until(
    condition: Callable[[], object], within: float = DEADLINE, *, every: float = 0.005
) -> float:
    """Return the seconds that it took until the condition was met."""
    __tracebackhide__ = True
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within:
            pytest.fail(f"the condition was not met within {within:g} s")
        await asyncio.sleep(every)
    return time.monotonic() - began


async def poll(
    ask: Callable[[], Awaitable[T]],
    is_right: Callable[[T], object] = bool,
    within: float = DEADLINE,
    *,
    every: float = 0.01,
) -> T:
    """Ask repeatedly until the answer is right, and return it."""
    __tracebackhide__ = True
    answer: T | None = None
    try:
        async with asyncio.timeout(within) as deadline:
            while True:
                answer = await ask()
                if is_right(answer):
                    return answer
                await asyncio.sleep(every)
    except TimeoutError:
        if not deadline.expired():
            raise
        pytest.fail(f"after {within:g} s the answer is still {answer}")


def block_until(
    condition: Callable[[], object], within: float = DEADLINE, *, every: float = 0.005
) -> float:
    """Do what `wait_until` does, where no event loop runs."""
    __tracebackhide__ = True
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within:
            pytest.fail(f"the condition was not met within {within:g} s")
        time.sleep(every)
    return time.monotonic() - began


async def wait_until_asleep(clock: ManualClock, *tasks: asyncio.Future[Any]) -> None:
    """Wait for work in threads, until only an advance of the clock helps or one of these is done.

    Advance the clock earlier, and the work may begin to sleep when its time is over.
    """
    __tracebackhide__ = True
    await wait_until(lambda: count_sleepers(clock) or any(task.done() for task in tasks))


def count_sleepers(clock: ManualClock, within: float = math.inf) -> int:
    """Return how many sleep whose time is over within so many seconds."""
    until = clock.monotonic() + within
    return sum(due <= until and not alarm.done() for due, _, alarm in clock._sleepers)


async def advance_until(
    clock: ManualClock, condition: Callable[[], object], step: float = 0.5, within: float = DEADLINE
) -> None:
    """Advance the clock in steps until the condition is met, with real time between them."""
    __tracebackhide__ = True

    async def advance() -> bool:
        await clock.advance(step)
        return bool(condition())

    await poll(advance, within=within, every=0.002)


async def wait_until_stable(read: Callable[[], T], seconds: float, within: float = DEADLINE) -> T:
    """Return the value once it has stayed the same for so long."""
    __tracebackhide__ = True

    async def read_twice() -> tuple[T, T]:
        before = read()
        await pass_time(seconds)
        return before, read()

    return (await poll(read_twice, lambda values: values[0] == values[1], within))[1]


async def pass_time(seconds: float) -> None:
    """Let real time pass, where it is what is tested: an outage, a pace, a silence that lasts.

    A negative time has passed already.
    """
    await asyncio.sleep(max(0.0, seconds))


def block(seconds: float) -> None:
    """Do what `pass_time` does, and let nothing else run in this thread."""
    time.sleep(max(0.0, seconds))


async def run_others(times: int = 1) -> None:
    """Give the other tasks of the loop so many turns."""
    for _ in range(times):
        await asyncio.sleep(0)
