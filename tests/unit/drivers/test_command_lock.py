from __future__ import annotations

import asyncio

import pytest
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.command_lock import CommandLock


@pytest.fixture
async def lock() -> CommandLock:
    return CommandLock('base "b"')


async def test_newer_command_revokes_the_older_one(lock: CommandLock) -> None:
    older = lock.acquire("spin")
    older.raise_if_revoked()
    newer = lock.acquire("stop")
    assert (older.is_revoked, newer.is_revoked) == (True, False)
    with pytest.raises(Interrupted, match='base "b" did not finish spin: interrupted by stop'):
        older.raise_if_revoked()


async def test_wait_ends_when_the_command_is_revoked(lock: CommandLock) -> None:
    clock = ManualClock()
    older = lock.acquire("spin")
    waiting = asyncio.ensure_future(older.wait(clock, 5))
    await clock.advance(1)
    await lock.acquire("newer").wait(clock, 0)
    with pytest.raises(Interrupted, match="interrupted by newer"):
        await asyncio.wait_for(waiting, 10)


async def test_awaited_work_ends_with_its_command(lock: CommandLock) -> None:
    clock = ManualClock()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await run_others()
            ended.set()

    turn = lock.acquire("spin")
    for end in (lambda task: lock.acquire("stop"), lambda task: task.cancel()):
        ended.clear()
        waiting = asyncio.ensure_future(turn.run(work()))
        await clock.settle()
        end(waiting)
        await asyncio.wait([waiting])
        assert ended.is_set()
        turn = lock.acquire("again")


async def test_failure_after_revocation_is_reported_as_interruption(lock: CommandLock) -> None:
    turn = lock.acquire("spin")

    async def fail() -> None:
        lock.acquire("stop")
        raise LookupError

    with pytest.raises(Interrupted, match="interrupted by stop"):
        await turn.run(fail())
