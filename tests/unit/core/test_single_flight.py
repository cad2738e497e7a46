from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from functools import partial

import pytest
from tests.support.waiting import run_others

from cogwork.core.errors import Interrupted
from cogwork.core.single_flight import SingleFlight, SingleFlightGroup


class ManualWork:
    """Work that ends when the test sets its result."""

    def __init__(self) -> None:
        self.futures: list[asyncio.Future[str]] = []

    def __call__(self) -> asyncio.Future[str]:
        self.futures.append(asyncio.get_running_loop().create_future())
        return self.futures[-1]


@pytest.fixture
def flight() -> SingleFlight[str]:
    return SingleFlight()


@pytest.fixture
def make() -> ManualWork:
    return ManualWork()


@pytest.fixture
def no_log_noise(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail the test when Python logs about futures whose result was never retrieved."""
    yield
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.DEBUG] == []


async def assert_waiting(*waiters: asyncio.Future[str]) -> None:
    await run_others()
    assert not any(waiter.done() for waiter in waiters)


async def test_work_is_done_once_for_each_key(flight: SingleFlight[str], make: ManualWork) -> None:
    for _ in range(2):
        waiters = [asyncio.ensure_future(flight.get(1, make)) for _ in range(3)]
        await assert_waiting()
        if not make.futures[0].done():
            make.futures[0].set_result("one")
        assert await asyncio.gather(*waiters) == ["one"] * 3
    assert len(make.futures) == 1
    another = asyncio.ensure_future(flight.get(2, make))
    await assert_waiting(another)
    make.futures[1].set_result("two")
    assert await another == "two"
    assert len(make.futures) == 2


async def test_callers_during_the_work_share_its_result(
    flight: SingleFlight[str], make: ManualWork
) -> None:
    first = asyncio.ensure_future(flight.get(1, make))
    await assert_waiting(first)
    later = asyncio.ensure_future(flight.get(2, make))
    await assert_waiting(first, later)
    assert flight.is_busy
    make.futures[0].set_result("one")
    assert [await first, await later] == ["one", "one"]
    assert len(make.futures) == 1
    assert not flight.is_busy


async def test_cancelled_caller_does_not_end_the_work(
    flight: SingleFlight[str], make: ManualWork, no_log_noise: None
) -> None:
    first = asyncio.ensure_future(flight.get(1, make))
    second = asyncio.ensure_future(flight.get(1, make))
    await assert_waiting(first, second)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    make.futures[0].set_result("one")
    assert await second == "one"


async def test_error_reaches_all_waiters_and_no_later_caller(
    flight: SingleFlight[str], make: ManualWork, no_log_noise: None
) -> None:
    waiters = [asyncio.ensure_future(flight.get(1, make)) for _ in range(3)]
    await assert_waiting(*waiters)
    make.futures[0].set_exception(ValueError("no"))
    for waiter in waiters:
        with pytest.raises(ValueError, match="no"):
            await waiter
    again = asyncio.ensure_future(flight.get(1, make))
    await assert_waiting(again)
    make.futures[1].set_result("yes")
    assert await again == "yes"


async def test_error_without_waiters_is_not_logged(
    flight: SingleFlight[str], make: ManualWork, no_log_noise: None
) -> None:
    waiter = asyncio.ensure_future(flight.get(1, make))
    await assert_waiting(waiter)
    waiter.cancel()
    await asyncio.wait([waiter])
    make.futures.pop().set_exception(ValueError("nobody hears it"))
    await run_others()


async def test_work_that_cannot_start_keeps_the_last_result(flight: SingleFlight[str]) -> None:
    def fail() -> asyncio.Future[str]:
        raise ValueError("too much work")

    def succeed() -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.set_result("fine")
        return future

    with pytest.raises(ValueError, match="too much"):
        await flight.get(1, fail)
    assert await flight.get(1, succeed) == "fine"
    with pytest.raises(ValueError, match="too much"):
        await flight.get(2, fail)
    assert await flight.get(1, fail) == "fine"


async def test_close_cancels_the_work_and_interrupts_waiters(flight: SingleFlight[str]) -> None:
    ended, started = [], asyncio.Event()

    async def work() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return ""

    waiters = [
        asyncio.ensure_future(flight.get(key, lambda: asyncio.ensure_future(work())))
        for key in (1, 2)
    ]
    await started.wait()
    await flight.aclose()
    assert ended
    for waiter in waiters:
        with pytest.raises(Interrupted, match="closed"):
            await waiter
    with pytest.raises(Interrupted, match="closed"):
        await flight.get(3, lambda: asyncio.ensure_future(work()))
    await flight.aclose()


async def test_get_after_close_is_interrupted(flight: SingleFlight[str], make: ManualWork) -> None:
    await flight.aclose()
    with pytest.raises(Interrupted):
        await flight.get(1, make)
    assert make.futures == []


class TestSingleFlightGroup:
    async def test_keys_of_a_group_do_not_wait_for_each_other(self, make: ManualWork) -> None:
        group: SingleFlightGroup[str] = SingleFlightGroup()
        depth = asyncio.ensure_future(group.get("depth", 1, make))
        color = asyncio.ensure_future(group.get("color", 1, make))
        await assert_waiting(depth, color)
        make.futures[1].set_result("colours")
        assert await color == "colours"
        assert not depth.done()
        make.futures[0].set_result("distances")
        assert await depth == "distances"
        await group.aclose()

    async def test_idle_results_over_the_limit_are_evicted(self) -> None:
        group: SingleFlightGroup[str] = SingleFlightGroup(max_flights=3)
        alive: set[int] = set()

        class Large(str):
            def __del__(self) -> None:
                alive.discard(int(self))

        async def make(number: int) -> str:
            alive.add(number)
            return Large(number)

        for number in range(20):
            await group.get(number, None, partial(asyncio.ensure_future, make(number)))
        gc.collect()
        assert alive == {17, 18, 19}
        await group.aclose()

    async def test_running_work_over_the_limit_is_kept(self, make: ManualWork) -> None:
        group: SingleFlightGroup[str] = SingleFlightGroup(max_flights=2)
        waiters = [asyncio.ensure_future(group.get(number, 1, make)) for number in range(5)]
        await assert_waiting(*waiters)
        for future in make.futures:
            future.set_result("done")
        assert await asyncio.gather(*waiters) == ["done"] * 5
        await group.aclose()

    async def test_close_interrupts_all_waiters(self, make: ManualWork) -> None:
        group: SingleFlightGroup[str] = SingleFlightGroup()
        waiters = [asyncio.ensure_future(group.get(number, 1, make)) for number in range(3)]
        await assert_waiting(*waiters)
        await group.aclose()
        for waiter in waiters:
            with pytest.raises(Interrupted):
                await waiter
