from __future__ import annotations

import pytest

from cogwork.auth.attempt_limiter import AttemptLimiter, AttemptLimits, Budget
from cogwork.auth.errors import TooManyAttempts

LIMITS = AttemptLimits(pair=Budget(3, 10), address=Budget(6, 5), entity=Budget(5, 5))


class Limiter:
    def __init__(self) -> None:
        self.now = 0.0
        self.limiter = AttemptLimiter(lambda: self.now, LIMITS)

    def is_checked(self, address: str, entity: str) -> bool:
        try:
            self.limiter.check(address, entity)
        except TooManyAttempts:
            return False
        return True

    def guess(self, address: str, entity: str) -> bool:
        """Return whether the wrong guess was checked."""
        if not self.is_checked(address, entity):
            return False
        self.limiter.record_failure(address, entity)
        return True


def test_failures_of_a_pair_are_limited() -> None:
    limiter = Limiter()
    assert [limiter.guess("a", "e") for _ in range(5)] == [True] * 3 + [False] * 2
    assert limiter.guess("a", "another")
    assert limiter.guess("b", "e")


def test_failures_of_an_address_are_limited() -> None:
    limiter = Limiter()
    guesses = [limiter.guess("a", f"entity {n}") for n in range(9)]
    assert guesses == [True] * 6 + [False] * 3


def test_an_address_gets_one_guess_once_the_budget_of_an_entity_is_spent() -> None:
    limiter = Limiter()
    for number in range(5):
        assert limiter.guess(f"address {number}", "e")
    assert [limiter.guess("new", "e") for _ in range(3)] == [True, False, False]


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


def test_outdated_key_locks_out_only_itself() -> None:
    limiter = Limiter()
    let_in = 0
    for second in range(600):
        limiter.now = second
        limiter.guess("shared address", "outdated key")
        let_in += limiter.is_checked("shared address", "good key")
    assert let_in == 600


def test_guesses_from_elsewhere_lock_out_no_one() -> None:
    limiter = Limiter()
    for second in range(600):
        limiter.now = second
        for number in range(20):
            limiter.guess(f"attacker {number}", "e")
        assert limiter.is_checked("home", "e")


def test_login_clears_earlier_failures() -> None:
    limiter = Limiter()
    for _ in range(2):
        limiter.guess("a", "e")
    limiter.limiter.record_success("a", "e")
    assert [limiter.guess("a", "e") for _ in range(4)] == [True] * 3 + [False]


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    limiter = Limiter()
    guesses = [limiter.guess(f"ipv6:[2001:db8::{n:x}]", "e") for n in range(5)]
    assert guesses == [True] * 3 + [False] * 2
    assert limiter.guess("ipv6:[2001:db8:0:1::1]", "e")


def test_memory_is_bounded() -> None:
    limiter = AttemptLimiter(lambda: 0.0, AttemptLimits(max_tracked=10))
    for n in range(100):
        limiter.record_failure(f"a{n}", f"e{n}")
    for failures in (limiter._pairs, limiter._addresses, limiter._entities):
        assert len(failures._counts) == 10
