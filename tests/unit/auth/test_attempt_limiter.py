from __future__ import annotations

import pytest

from cogwork.auth.attempt_limiter import AttemptLimiter, AttemptLimits
from cogwork.auth.errors import TooManyAttempts


class Limiter:
    def __init__(self) -> None:
        self.now = 0.0
        self.limiter = AttemptLimiter(lambda: self.now, AttemptLimits(burst=3, refill_seconds=10))

    def guess(self, address: str, entity: str) -> bool:
        """Return whether the guess would be checked."""
        try:
            self.limiter.check(address, entity)
        except TooManyAttempts:
            return False
        self.limiter.record_failure(address, entity)
        return True


def test_failures_are_limited_per_address() -> None:
    limiter = Limiter()
    assert [limiter.guess("a", f"entity {n}") for n in range(5)] == [True] * 3 + [False] * 2
    assert limiter.guess("b", "another")


def test_failures_are_limited_per_entity() -> None:
    limiter = Limiter()
    assert [limiter.guess(f"address {n}", "e") for n in range(5)] == [True] * 3 + [False] * 2


def test_the_budget_refills_with_time() -> None:
    limiter = Limiter()
    for _ in range(3):
        limiter.guess("a", "e")
    limiter.now = 9.9
    assert not limiter.guess("a", "e")
    limiter.now = 10
    assert limiter.guess("a", "e")
    assert not limiter.guess("a", "e")


def test_error_says_when_to_try_again() -> None:
    limiter = Limiter()
    for _ in range(3):
        limiter.guess("a", "e")
    with pytest.raises(TooManyAttempts, match="try again in 10s"):
        limiter.limiter.check("a", "e")


def test_address_that_has_logged_in_is_not_locked_out_by_others() -> None:
    limiter = Limiter()
    limiter.limiter.record_success("home", "e")
    for n in range(10):
        limiter.guess(f"address {n}", "e")
        limiter.guess("home", f"entity {n}")
    assert [limiter.guess("home", "e") for _ in range(5)] == [True] * 3 + [False] * 2


def test_memory_is_bounded() -> None:
    limiter = AttemptLimiter(lambda: 0.0, AttemptLimits(max_tracked=10))
    for n in range(100):
        limiter.record_failure(f"a{n}", f"e{n}")
        limiter.record_success(f"a{n}", f"e{n}")
    assert len(limiter._budgets._spent) == 10
    assert len(limiter._trusted) == 10
