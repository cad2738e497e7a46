from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator

import pytest
from tests.support.waiting import run_others

from cogwork.core.errors import Interrupted
from cogwork.core.workers import TooMuchWork, Workers, await_future

TIMEOUT = 10.0


class Gate:
    """Work that blocks until the gate is opened."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self._open = threading.Event()
        self.runs = 0

    def pass_through(self) -> str:
        self.runs += 1
        self.started.set()
        assert self._open.wait(TIMEOUT)
        return "through"

    def fail(self) -> str:
        self.pass_through()
        raise ValueError("it fell")

    def open(self) -> None:
        self._open.set()

    async def wait_until_reached(self) -> None:
        await asyncio.to_thread(self.started.wait, TIMEOUT)


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
def no_log_noise(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Fail the test when Python logs about futures whose result was never retrieved."""
    caplog.set_level(logging.DEBUG)
    yield caplog
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.levelno > logging.DEBUG] == []


async def test_work_runs_in_a_thread_with_the_given_name(workers: Workers) -> None:
    assert (await workers.run(lambda: threading.current_thread().name)).startswith("camera c")
    assert await workers.run(max, 1, 3, 2) == 3


async def test_error_of_the_work_reaches_the_caller(workers: Workers) -> None:
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda: 1 // 0)
    assert await workers.run(str, 7) == "7"


async def test_full_queue_refuses_more_work(workers: Workers, gate: Gate) -> None:
    first = [asyncio.ensure_future(workers.run(gate.pass_through)) for _ in range(3)]
    await gate.wait_until_reached()
    with pytest.raises(TooMuchWork, match="camera c is busy: 3 tasks are queued or running"):
        await workers.run(str)
    gate.open()
    assert await asyncio.gather(*first) == ["through"] * 3
    assert await workers.run(str, 1) == "1"


async def test_slots_are_released_when_work_succeeds_or_fails(workers: Workers) -> None:
    for _ in range(20):
        results = await asyncio.gather(
            *(workers.run(each) for each in (lambda: 1, lambda: 1 // 0, lambda: [][1])),
            return_exceptions=True,
        )
        assert [type(each) for each in results] == [int, ZeroDivisionError, IndexError]


async def test_slots_are_counted_correctly_with_many_threads() -> None:
    workers = Workers("many", threads=4, waiting=4)
    for _ in range(300):
        await asyncio.gather(*(workers.run(int) for _ in range(8)))
    gate = Gate()
    running = [asyncio.ensure_future(workers.run(gate.pass_through)) for _ in range(8)]
    await gate.wait_until_reached()
    with pytest.raises(TooMuchWork):
        workers.submit(int)
    gate.open()
    await asyncio.gather(*running)
    workers.close()


async def test_cancelled_waiter_does_not_end_shared_work(
    workers: Workers, gate: Gate, no_log_noise: object
) -> None:
    work = workers.submit(gate.pass_through)
    waiters = [asyncio.ensure_future(await_future(work)) for _ in range(3)]
    await gate.wait_until_reached()
    waiters[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters[0]
    gate.open()
    assert await asyncio.gather(*waiters[1:]) == ["through"] * 2
    assert await await_future(work) == "through"
    assert gate.runs == 1


async def test_cancelled_run_is_withdrawn_but_shared_work_is_not(
    workers: Workers, gate: Gate
) -> None:
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.wait_until_reached()
    done: list[str] = []
    shared = workers.submit(done.append, "shared")
    tasks = [
        asyncio.ensure_future(each)
        for each in (await_future(shared), workers.run(done.append, "taken back"))
    ]
    await run_others()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    gate.open()
    await running
    await await_future(shared)
    assert await workers.run(str, "last") == "last"
    assert done == ["shared"]


async def test_close_after_runs_last_after_queued_work(workers: Workers, gate: Gate) -> None:
    done: list[str] = []
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.wait_until_reached()
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


async def test_error_without_waiters_is_not_logged(
    workers: Workers, gate: Gate, no_log_noise: object
) -> None:
    waiter = asyncio.ensure_future(workers.run(gate.fail))
    await gate.wait_until_reached()
    waiter.cancel()
    await asyncio.wait([waiter])
    gate.open()
    assert await workers.run(str, "next") == "next"


def test_loop_that_ends_before_the_work_logs_nothing(gate: Gate, no_log_noise: object) -> None:
    workers = Workers("late")

    async def ask() -> None:
        waiter = asyncio.ensure_future(workers.run(gate.fail))
        await gate.wait_until_reached()
        waiter.cancel()
        await asyncio.wait([waiter])

    asyncio.run(ask())
    gate.open()
    workers._executor.shutdown(wait=True)


async def test_close_interrupts_waiters_of_queued_work(workers: Workers, gate: Gate) -> None:
    running = asyncio.ensure_future(workers.run(gate.pass_through))
    await gate.wait_until_reached()
    queued = workers.submit(str)
    waiter = asyncio.ensure_future(await_future(queued))
    await run_others()
    workers.close()
    with pytest.raises(Interrupted, match="closed"):
        await waiter
    with pytest.raises(Interrupted, match="closed"):
        await await_future(queued)
    gate.open()
    assert await running == "through"


async def test_run_after_close_is_interrupted(workers: Workers) -> None:
    workers.close()
    workers.close()
    for _ in range(5):  # no call uses up a slot
        with pytest.raises(Interrupted, match="camera c is closed"):
            await workers.run(str)


async def test_error_does_not_keep_arguments_alive(workers: Workers) -> None:
    """Images are large: memory of a failed decode must be freed with the error."""
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
        await workers.run(int)  # until the thread has released the last work
        assert not alive
    finally:
        gc.enable()
