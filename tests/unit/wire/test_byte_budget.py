from __future__ import annotations

import pytest

from cogwork.wire.byte_budget import ByteBudget, OverBudget


def budget() -> ByteBudget:
    return ByteBudget("replies", total=100, per_client=60)


def test_a_client_may_hold_its_share() -> None:
    held = budget()
    held.acquire("a", 30)
    held.acquire("a", 30)
    with pytest.raises(OverBudget, match="your replies hold 60 bytes, of 60 for all clients"):
        held.acquire("a", 1)
    held.release("a", 30)
    held.acquire("a", 10)
    assert held.total_held == 40


def test_the_first_message_of_a_client_is_taken_although_others_hold_all() -> None:
    held = budget()
    held.acquire("a", 60)
    held.acquire("b", 60)
    held.acquire("c", 200)
    with pytest.raises(OverBudget):
        held.acquire("c", 1)
    with pytest.raises(OverBudget):
        held.acquire("d", 100)


def test_nothing_is_left_of_a_client_that_holds_nothing() -> None:
    held = budget()
    with held.hold("a", 5):
        assert held.held == {"a": 5}
    assert held.held == {}
    assert held.total_held == 0
