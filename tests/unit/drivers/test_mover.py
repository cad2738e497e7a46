from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest

from cogwork.core.clock import ManualClock, Waitable
from cogwork.core.errors import Interrupted
from cogwork.drivers.mover import Mover


@pytest.fixture
async def mover(clock: ManualClock) -> Mover:
    return Mover('gantry "x"', (0.0, 0.0), clock)


def is_moving(mover: Mover) -> bool:
    """A type checker would take it for what it was the last time."""
    return mover.is_moving


async def test_it_moves_in_time(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 2.0), (4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(2)
    assert list(mover.joints) == [2, 1]
    assert is_moving(mover)
    await clock.advance(3.9)
    assert not move.done()
    await clock.advance(0.1)
    await move
    assert list(mover.joints) == [4, 0]
    assert not is_moving(mover)


async def test_joints_may_move_apart(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_independently("move", (4.0, 2.0), (1.0, 1.0)))
    await clock.advance(3)
    assert list(mover.joints) == [3, 2]
    await clock.advance(1)
    await move


async def test_the_newest_command_has_it(mover: Mover, clock: ManualClock) -> None:
    older = asyncio.ensure_future(mover.move_through("older", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    newer = asyncio.ensure_future(mover.move_through("newer", [(0.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    with pytest.raises(Interrupted, match='gantry "x" did not finish older: interrupted by newer'):
        await older
    await newer
    assert list(mover.joints) == [0, 0]


async def test_halted_it_stays_where_it_is(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    mover.halt("stop")
    assert not is_moving(mover)
    await clock.advance(1)
    assert list(mover.joints) == [1, 0]
    with pytest.raises(Interrupted, match="interrupted by stop"):
        await move


async def test_a_cancelled_move_stops_it(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    assert not is_moving(mover)
    assert list(mover.joints) == [1, 0]


async def test_a_cancelled_move_leaves_the_newer_one_alone(
    mover: Mover, clock: ManualClock
) -> None:
    older = asyncio.ensure_future(mover.move_through("older", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.settle()
    newer = asyncio.ensure_future(mover.move_through("newer", [(2.0, 0.0)], (1.0, 1.0)))
    await asyncio.sleep(0)
    older.cancel()
    await clock.advance(2)
    await newer
    assert older.cancelled() or isinstance(older.exception(), Interrupted)
    assert list(mover.joints) == [2, 0]


class EarlyClock(ManualClock):
    """Rings ahead of time; loops that count milliseconds do so by a part of one."""

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        assert timeout is not None
        await super().wait(waitables, 0)


async def test_a_timer_that_rings_early_does_not_leave_it_moving() -> None:
    mover = Mover("it", (0.0,), EarlyClock())
    await mover.move_through("move", [(4.0,)], (1.0,))
    assert list(mover.joints) == [4]
    assert not is_moving(mover)


async def test_held_it_stays_until_it_has_a_course(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    with mover.acquire("think"):
        assert not is_moving(mover)
        assert list(mover.joints) == [1, 0]
        with pytest.raises(Interrupted, match="interrupted by think"):
            await move


async def test_an_error_of_whoever_holds_it_stops_it(mover: Mover, clock: ManualClock) -> None:
    def fail() -> None:
        with mover.acquire("stream") as held:
            held.trajectory = held.trajectory.move_through([(4.0, 0.0)], (1.0, 1.0), held.now)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert not is_moving(mover)


async def test_once_overtaken_nobody_gives_it_a_course(mover: Mover) -> None:
    with mover.acquire("older") as older, mover.acquire("newer"):
        with pytest.raises(Interrupted, match="did not finish older: interrupted by newer"):
            older.trajectory = older.trajectory
        with pytest.raises(Interrupted):
            await older.wait(None)


async def test_what_a_command_waits_for_is_given_up_with_it(
    mover: Mover, clock: ManualClock
) -> None:
    never = asyncio.get_running_loop().create_future()

    async def think() -> None:
        with mover.acquire("think") as held:
            await held.run(never)

    thinking = asyncio.ensure_future(think())
    await clock.settle()
    mover.halt("stop")
    with pytest.raises(Interrupted, match="did not finish think: interrupted by stop"):
        await asyncio.wait_for(thinking, 10)
    assert never.cancelled()


async def test_what_a_command_waits_for_may_fail_or_succeed(mover: Mover) -> None:
    async def fail() -> None:
        raise LookupError("nowhere")

    with mover.acquire("think") as held:
        assert await held.run(asyncio.sleep(0, "found")) == "found"
        with pytest.raises(LookupError, match="nowhere"):
            await held.run(fail())
