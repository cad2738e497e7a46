from __future__ import annotations

import contextlib

import pytest

from cogwork.core.limits.byte_budget import ByteBudget, Hold, OverBudget, request_budget

MIB = 1 << 20


def make_budget() -> ByteBudget:
    return ByteBudget("replies", total=100, per_client=60)


def test_client_may_hold_its_share() -> None:
    budget = make_budget()
    budget.acquire("a", 30)
    budget.acquire("a", 30)
    with pytest.raises(OverBudget, match="your replies hold 60 bytes, and all clients"):
        budget.acquire("a", 1)
    budget.release("a", 30)
    budget.acquire("a", 10)
    assert budget.held.total == 40


def test_first_message_of_a_client_is_accepted_over_the_total() -> None:
    budget = make_budget()
    budget.acquire("a", 60)
    budget.acquire("b", 60)
    budget.acquire("c", 200)
    with pytest.raises(OverBudget):
        budget.acquire("c", 1)
    with pytest.raises(OverBudget):
        budget.acquire("d", 100)


def test_client_that_holds_nothing_is_forgotten() -> None:
    budget = make_budget()
    with Hold(budget, "a") as hold:
        hold.acquire(5)
        assert budget.held.by_client == {"a": 5}
    assert budget.held.by_client == {}
    assert budget.held.total == 0


def test_call_gives_back_what_it_holds_beyond_a_size() -> None:
    budget = make_budget()
    with Hold(budget, "a") as hold:
        hold.acquire(5)
        hold.acquire(20)
        hold.reduce(5)
        assert budget.held.by_client == {"a": 5}
    assert budget.held.total == 0


def test_small_messages_are_not_counted_and_others_with_their_copies() -> None:
    budget = ByteBudget("requests", total=MIB, per_client=MIB)
    with Hold(budget, "a") as hold:
        hold.acquire_message(4096)
        assert hold.size == 0
        hold.acquire_message(5000)
        assert hold.size == 15_000


@pytest.mark.parametrize("memory", [512 * MIB, 4096 * MIB, 65536 * MIB])
def test_requests_take_a_quarter_of_the_memory_at_most(memory: int) -> None:
    budget = request_budget(memory)
    for number in range(1000):
        with contextlib.suppress(OverBudget):
            budget.acquire(str(number), MIB)
    assert budget.held.total <= memory // 4


def test_client_that_holds_nothing_may_send_the_largest_request_to_a_small_computer() -> None:
    Hold(request_budget(512 * MIB), "a").acquire_message(32 * MIB)
