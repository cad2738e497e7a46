from __future__ import annotations

import pytest

from cogwork.wire.byte_budget import ByteBudget, OverBudget


def make_budget() -> ByteBudget:
    return ByteBudget("replies", total=100, per_client=60)


def test_client_may_hold_its_share() -> None:
    held = make_budget()
    held.acquire("a", 30)
    held.acquire("a", 30)
    with pytest.raises(OverBudget, match="your replies hold 60 bytes, of 60 for all clients"):
        held.acquire("a", 1)
    held.release("a", 30)
    held.acquire("a", 10)
    assert held.total_held == 40


def test_first_message_of_a_client_is_accepted_over_the_total() -> None:
    held = make_budget()
    held.acquire("a", 60)
    held.acquire("b", 60)
    held.acquire("c", 200)
    with pytest.raises(OverBudget):
        held.acquire("c", 1)
    with pytest.raises(OverBudget):
        held.acquire("d", 100)


def test_client_that_holds_nothing_is_forgotten() -> None:
    held = make_budget()
    with held.hold("a", 5):
        assert held.held == {"a": 5}
    assert held.held == {}
    assert held.total_held == 0
