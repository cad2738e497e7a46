"""What tests wait with: conditions that are met, and a failure at the deadline."""

import asyncio

import pytest
from tests.support.waiting import (
    advance_until,
    block_until,
    poll,
    wait_until,
    wait_until_asleep,
    wait_until_stable,
)

from cogwork.core.clock import ManualClock


async def test_wait_ends_with_the_condition() -> None:
    answers = iter([False, False, True])
    assert await wait_until(lambda: next(answers), every=0) < 1


async def test_condition_that_is_not_met_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"not met within 0\.01 s"):
        await wait_until(lambda: False, within=0.01)


async def test_poll_returns_the_right_answer() -> None:
    answers = iter([1, 2, 3])

    async def ask() -> int:
        return next(answers)

    assert await poll(ask, lambda answer: answer == 3, every=0) == 3


async def test_poll_shows_the_last_answer() -> None:
    async def ask() -> str:
        return "away"

    with pytest.raises(pytest.fail.Exception, match=r"after 0\.01 s the answer is still away"):
        await poll(ask, lambda answer: answer == "online", within=0.01)


def test_block_until_does_the_same_without_a_loop() -> None:
    answers = iter([False, True])
    assert block_until(lambda: next(answers), every=0) < 1
    with pytest.raises(pytest.fail.Exception, match="not met"):
        block_until(lambda: False, within=0.01)


async def test_poll_passes_on_a_timeout_that_is_not_its_own() -> None:
    async def ask() -> str:
        raise TimeoutError("of the connection")

    with pytest.raises(TimeoutError, match="of the connection"):
        await poll(ask)


async def test_work_in_a_thread_is_awaited_until_the_clock_has_to_advance() -> None:
    clock = ManualClock()

    async def work() -> None:
        await asyncio.to_thread(lambda: None)
        await clock.sleep(1)
        await asyncio.to_thread(lambda: None)

    working = asyncio.create_task(work())
    await wait_until_asleep(clock, working)
    assert not working.done()
    await clock.advance(1)
    await wait_until_asleep(clock, working)
    assert working.done()


async def test_clock_advances_until_the_condition_is_met() -> None:
    clock = ManualClock(0.0)
    await advance_until(clock, lambda: clock.time() >= 3, 1.0)
    assert clock.time() == 3


async def test_value_is_stable_when_it_has_stayed_the_same() -> None:
    values = iter([1, 2, 2, 3, 3, 3])
    assert await wait_until_stable(lambda: next(values), 0) == 3
