from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator

import pytest

from cogwork.core.errors import Interrupted
from cogwork.core.workers import TooMuchWork, Workers, await_future

WITHIN = 10.0


class Gate:
    """Work that lasts until it is let through."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self._open = threading.Event()
        self.runs = 0

    def pass_through(self) -> str:
        self.runs += 1
        self.begun.set()
        assert self._open.wait(WITHIN)
        return "through"

    def fall(self) -> str:
        self.pass_through()
        raise ValueError("it fell")

    def open(self) -> None:
        self._open.set()

    async def reached(self) -> None:
        await asyncio.to_thread(self.begun.wait, WITHIN)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def workers(gate: Gate) -> Iterator[Workers]:
    workers = Workers("camera c", waiting=2)
    yield workers
    gate.open()
    workers.close()


@pytest.fixture
def noise(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Fails the test for what Python says about futures that nobody asked."""
    caplog.set_level(logging.DEBUG)
    yield caplog
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.DEBUG] == []


async def test_it_does_work_in_a_thread_of_its_name(workers: Workers) -> None:
    assert (await workers.run(lambda: threading.current_thread().name)).startswith("camera c")
    assert await workers.run(max, 1, 3, 2) == 3


async def test_errors_reach_whoever_asked(workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    assert await workers.run(str, 7) == "7"


async def test_no_more_waits_than_is_said(workers: Workers, gate: Gate) -> None:
    first = [asyncio.ensure_future(workers.run(gate.pass_through)) for _ in range(3)]
    await gate.reached()
    with pytest.raises(TooMuchWork, match="camera c is busy: 3 tasks are queued or running"):
        await workers.run(str)
    gate.open()
    assert await asyncio.gather(*first) == ["through"] * 3
    assert await workers.run(str, 1) == "1"


async def test_places_are_given_back_however_work_ends(workers: Workers) -> None:
    for _ in range(20):
        results = await asyncio.gather(
            *(workers.run(each) for each in (lambda: 1, lambda: 1 // 0, lambda: [][1])),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [int, ZeroDivisionError, IndexError]


async def test_many_threads_count_right() -> None:
    workers = Workers("many", threads=4, waiting=4)
    for _ in range(300):
        await asyncio.gather(*(workers.run(int) for _ in range(8)))
    gate = Gate()
    running = [asyncio.ensure_future(workers.run(gate.pass_through)) for _ in range(8)]
    await gate.reached()
    with pytest.raises(TooMuchWork):
        workers.submit(int)
    gate.open()
    await asyncio.gather(*running)
    workers.close()


async def test_whoever_gives_up_does_not_end_the_work_of_others(
    workers: Workers, gate: Gate, noise: object
) -> None:
    work = workers.submit(gate.pass_through)
    waiters = [asyncio.ensure_future(await_future(work)) for _ in range(3)]
    await gate.reached()
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    gate.open()
    assert await asyncio.gather(*waiters[1:]) == ["through"] * 2
    assert await await_future(work) == "through"
    assert gate.runs == 1


async def test_giving_up_takes_back_only_what_is_ones_own(workers: Workers, gate: Gate) -> None:
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.reached()
    done: list[str] = []
    shared = workers.submit(done.append, "shared")
    tasks = [
        asyncio.ensure_future(each)
        for each in (await_future(shared), workers.run(done.append, "taken back"))
    ]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    gate.open()
    await running
    await await_future(shared)
    assert await workers.run(str, "last") == "last"
    assert done == ["shared"]


async def test_closing_after_everything_that_was_asked_for(workers: Workers, gate: Gate) -> None:
    done: list[str] = []
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.reached()
    queued = workers.submit(done.append, "queued")
    over = threading.Event()

    def last() -> None:
        done.append("last")
        over.set()

    workers.close_after(last)
    with pytest.raises(Interrupted):
        workers.submit(str)
    gate.open()
    await running
    await await_future(queued)
    assert await asyncio.to_thread(over.wait, 10)
    assert done == ["queued", "last"]


async def test_an_error_that_nobody_waits_for_is_no_noise(
    workers: Workers, gate: Gate, noise: object
) -> None:
    waiter = asyncio.ensure_future(workers.run(gate.fall))
    await gate.reached()
    waiter.cancel()
    await asyncio.wait([waiter])
    gate.open()
    assert await workers.run(str, "next") == "next"


def test_a_loop_that_ends_first_is_no_noise(gate: Gate, noise: object) -> None:
    workers = Workers("late")

    async def ask() -> None:
        waiter = asyncio.ensure_future(workers.run(gate.fall))
        await gate.reached()
        waiter.cancel()
        await asyncio.wait([waiter])

    asyncio.run(ask())
    gate.open()
    workers._executor.shutdown(wait=True)


async def test_closing_tells_those_whose_work_has_not_begun(workers: Workers, gate: Gate) -> None:
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.reached()
    queued = workers.submit(str)
    waiter = asyncio.ensure_future(await_future(queued))
    await asyncio.sleep(0)
    workers.close()
    with pytest.raises(Interrupted, match="closed"):
        await waiter
    with pytest.raises(Interrupted, match="closed"):
        await await_future(queued)
    gate.open()
    assert await running == "through"


async def test_a_closed_one_says_so(workers: Workers) -> None:
    workers.close()
    workers.close()
    for _ in range(5):  # each takes no place with it
        with pytest.raises(Interrupted, match="camera c is closed"):
            await workers.run(str)


async def test_an_error_keeps_nothing_alive(workers: Workers) -> None:
    """Pictures are large: what failed to decode must be gone once the error is."""
    alive: list[object] = []

    class Large:
        def __init__(self) -> None:
            alive.append(None)

        def __del__(self) -> None:
            alive.pop()

    def fail(_: Large) -> None:
        raise ValueError("no")

    async def ask() -> None:
        try:
            await workers.run(fail, Large())
        except ValueError:
            assert alive
        else:
            raise AssertionError

    gc.disable()
    try:
        await ask()
        await workers.run(int)  # until the thread has let go of the last work
        assert not alive
    finally:
        gc.enable()
