from __future__ import annotations

import asyncio
from collections.abc import Collection

import pytest
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock, Waitable
from cogwork.core.errors import Interrupted
from cogwork.drivers.mover import Mover


@pytest.fixture
async def mover(clock: ManualClock) -> Mover:
    return Mover('gantry "x"', (0.0, 0.0), clock)


def is_moving(mover: Mover) -> bool:
    """Return is_moving again: a type checker would assume the last value."""
    return mover.is_moving


async def test_move_through_takes_time(mover: Mover, clock: ManualClock) -> None:
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


async def test_move_independently_moves_joints_at_their_own_speeds(
    mover: Mover, clock: ManualClock
) -> None:
    move = asyncio.ensure_future(mover.move_independently("move", (4.0, 2.0), (1.0, 1.0)))
    await clock.advance(3)
    assert list(mover.joints) == [3, 2]
    await clock.advance(1)
    await move


async def test_newer_command_interrupts_a_move(mover: Mover, clock: ManualClock) -> None:
    older = asyncio.ensure_future(mover.move_through("older", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    newer = asyncio.ensure_future(mover.move_through("newer", [(0.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    with pytest.raises(Interrupted, match='gantry "x" did not finish older: interrupted by newer'):
        await older
    await newer
    assert list(mover.joints) == [0, 0]


async def test_halt_stops_and_interrupts_a_move(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    mover.halt("stop")
    assert not is_moving(mover)
    await clock.advance(1)
    assert list(mover.joints) == [1, 0]
    with pytest.raises(Interrupted, match="interrupted by stop"):
        await move


async def test_cancelled_move_stops(mover: Mover, clock: ManualClock) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    move.cancel()
    await asyncio.wait([move])
    assert not is_moving(mover)
    assert list(mover.joints) == [1, 0]


async def test_cancelled_move_does_not_affect_the_newer_one(
    mover: Mover, clock: ManualClock
) -> None:
    older = asyncio.ensure_future(mover.move_through("older", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.settle()
    newer = asyncio.ensure_future(mover.move_through("newer", [(2.0, 0.0)], (1.0, 1.0)))
    await run_others()
    older.cancel()
    await clock.advance(2)
    await newer
    assert older.cancelled() or isinstance(older.exception(), Interrupted)
    assert list(mover.joints) == [2, 0]


class EarlyClock(ManualClock):
    """Its timers fire early, by a fraction of the resolution of a real event loop."""

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        assert timeout is not None
        await super().wait(waitables, 0)


async def test_early_timer_does_not_leave_the_mover_moving() -> None:
    mover = Mover("it", (0.0,), EarlyClock())
    await mover.move_through("move", [(4.0,)], (1.0,))
    assert list(mover.joints) == [4]
    assert not is_moving(mover)


async def test_acquire_interrupts_a_move_and_holds_the_position(
    mover: Mover, clock: ManualClock
) -> None:
    move = asyncio.ensure_future(mover.move_through("move", [(4.0, 0.0)], (1.0, 1.0)))
    await clock.advance(1)
    with mover.acquire("think"):
        assert not is_moving(mover)
        assert list(mover.joints) == [1, 0]
        with pytest.raises(Interrupted, match="interrupted by think"):
            await move


async def test_error_while_acquired_stops_the_mover(mover: Mover, clock: ManualClock) -> None:
    def fail() -> None:
        with mover.acquire("stream") as held:
            held.trajectory = held.trajectory.move_through([(4.0, 0.0)], (1.0, 1.0), held.now)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert not is_moving(mover)


async def test_revoked_command_cannot_set_a_trajectory(mover: Mover) -> None:
    with mover.acquire("older") as older, mover.acquire("newer"):
        with pytest.raises(Interrupted, match="did not finish older: interrupted by newer"):
            older.trajectory = older.trajectory
        with pytest.raises(Interrupted):
            await older.wait(None)


async def test_awaited_work_is_cancelled_when_the_command_is_revoked(
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


async def test_result_or_error_of_awaited_work_is_returned(mover: Mover) -> None:
    async def find() -> str:
        await run_others()
        return "found"

    async def fail() -> None:
        raise LookupError("nowhere")

    with mover.acquire("think") as held:
        assert await held.run(find()) == "found"
        with pytest.raises(LookupError, match="nowhere"):
            await held.run(fail())
