"""What tests wait with: conditions that are met, and a failure at the deadline."""

import pytest
from tests.support.waiting import block_until, poll, wait_until


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
