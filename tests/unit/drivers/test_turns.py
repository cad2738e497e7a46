from __future__ import annotations

import asyncio

import pytest

from cogwork.core.clock import ManualClock
from cogwork.core.errors import Interrupted
from cogwork.drivers.turns import Turns


@pytest.fixture
async def turns() -> Turns:
    return Turns('base "b"')


async def test_the_newest_command_has_it(turns: Turns) -> None:
    older = turns.take("spin")
    older.check()
    newer = turns.take("stop")
    assert (older.is_over, newer.is_over) == (True, False)
    with pytest.raises(Interrupted, match='base "b" did not finish spin: stop ended it'):
        older.check()


async def test_a_wait_ends_with_the_turn(turns: Turns) -> None:
    clock = ManualClock()
    older = turns.take("spin")
    waiting = asyncio.ensure_future(older.wait(clock, 5))
    await clock.advance(1)
    await turns.take("newer").wait(clock, 0)
    with pytest.raises(Interrupted, match="newer ended it"):
        await asyncio.wait_for(waiting, 10)


async def test_nothing_that_a_turn_waits_for_goes_on_after_it(turns: Turns) -> None:
    clock = ManualClock()
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    turn = turns.take("spin")
    for end in (lambda task: turns.take("stop"), lambda task: task.cancel()):
        ended.clear()
        waiting = asyncio.ensure_future(turn.outcome(work()))
        await clock.settle()
        end(waiting)
        await asyncio.wait([waiting])
        assert ended.is_set()
        turn = turns.take("again")


async def test_what_failed_because_the_turn_was_over_is_not_to_blame(turns: Turns) -> None:
    turn = turns.take("spin")

    async def fail() -> None:
        turns.take("stop")
        raise LookupError

    with pytest.raises(Interrupted, match="stop ended it"):
        await turn.outcome(fail())
