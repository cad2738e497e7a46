from __future__ import annotations

import asyncio

import pytest

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.command_lock import CommandLock


@pytest.fixture
async def turns() -> CommandLock:
    return CommandLock('base "b"')


async def test_the_newest_command_has_it(turns: CommandLock) -> None:
    older = turns.acquire("spin")
    older.raise_if_revoked()
    newer = turns.acquire("stop")
    assert (older.is_revoked, newer.is_revoked) == (True, False)
    with pytest.raises(Interrupted, match='base "b" did not finish spin: interrupted by stop'):
        older.raise_if_revoked()


async def test_a_wait_ends_with_the_turn(turns: CommandLock) -> None:
    clock = ManualClock()
    older = turns.acquire("spin")
    waiting = asyncio.ensure_future(older.wait(clock, 5))
    await clock.advance(1)
    await turns.acquire("newer").wait(clock, 0)
    with pytest.raises(Interrupted, match="interrupted by newer"):
        await asyncio.wait_for(waiting, 10)


async def test_nothing_that_a_turn_waits_for_goes_on_after_it(turns: CommandLock) -> None:
    clock = ManualClock()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    turn = turns.acquire("spin")
    for end in (lambda task: turns.acquire("stop"), lambda task: task.cancel()):
        ended.clear()
        waiting = asyncio.ensure_future(turn.run(work()))
        await clock.settle()
        end(waiting)
        await asyncio.wait([waiting])
        assert ended.is_set()
        turn = turns.acquire("again")


async def test_what_failed_because_the_turn_was_over_is_not_to_blame(turns: CommandLock) -> None:
    turn = turns.acquire("spin")

    async def fail() -> None:
        turns.acquire("stop")
        raise LookupError

    with pytest.raises(Interrupted, match="interrupted by stop"):
        await turn.run(fail())
