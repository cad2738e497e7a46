from __future__ import annotations

import pytest

from cogwork.auth.attempt_limiter import (
    MIN_GENERATED_LENGTH,
    AttemptLimiter,
    AttemptLimits,
    SharedAttemptLimiter,
)
from cogwork.auth.errors import TooManyAttempts
from cogwork.core.limits.token_bucket import Rate

LIMITS = AttemptLimits(
    pair=Rate.every(10, burst=3), network=Rate.every(5, burst=6), entity=Rate.every(5, burst=5)
)
SHORT, GENERATED = "hunter2", "x" * MIN_GENERATED_LENGTH


class Limiter:
    def __init__(self) -> None:
        self.now = 0.0
        self.limiter = AttemptLimiter(lambda: self.now, LIMITS)

    def is_checked(self, address: str, entity: str, secret: str = SHORT) -> bool:
        try:
            self.limiter.check_guessable(address, entity, secret)
        except TooManyAttempts:
            return False
        return True

    def fail(self, address: str, entity: str, secret: str = GENERATED) -> bool:
        """Return whether the wrong secret is answered with "invalid credentials"."""
        if not self.is_checked(address, entity, secret):
            return False
        try:
            self.limiter.record_failure(address, entity)
        except TooManyAttempts:
            return False
        return True


def test_failures_of_a_pair_are_limited() -> None:
    limiter = Limiter()
    assert [limiter.fail("a", "e") for _ in range(5)] == [True] * 3 + [False] * 2
    assert limiter.fail("a", "another")
    assert limiter.fail("b", "e")


def test_failures_of_a_network_are_limited() -> None:
    limiter = Limiter()
    failures = [limiter.fail("a", f"entity {n}") for n in range(9)]
    assert failures == [True] * 6 + [False] * 3


def test_generated_secrets_are_always_checked() -> None:
    limiter = Limiter()
    for number in range(10_000):
        limiter.fail("a", f"entity {number % 20}")
        limiter.fail(f"address {number % 20}", "e")
    assert limiter.is_checked("a", "e", GENERATED)


def test_short_secrets_are_not_checked_once_their_pair_has_failed_too_often() -> None:
    limiter = Limiter()
    for _ in range(3):
        assert limiter.fail("a", "e", SHORT)
    assert not limiter.is_checked("a", "e")
    assert limiter.is_checked("b", "e")
    assert limiter.is_checked("a", "another")


def test_short_secrets_of_others_are_checked_however_often_a_network_has_failed() -> None:
    limiter = Limiter()
    for number in range(1000):
        limiter.fail("a", f"entity {number}", SHORT)
    assert limiter.is_checked("a", "good key")


def test_a_network_gets_one_guess_once_the_budget_of_an_entity_is_spent() -> None:
    limiter = Limiter()
    for number in range(5):
        assert limiter.fail(f"address {number}", "e", SHORT)
    assert [limiter.fail("new", "e", SHORT) for _ in range(3)] == [True, False, False]


def test_the_budget_refills_with_time() -> None:
    limiter = Limiter()
    for _ in range(1000):
        limiter.fail("a", "e")
    limiter.now = 9.9
    assert not limiter.fail("a", "e")
    limiter.now = 10
    assert limiter.fail("a", "e")
    assert not limiter.fail("a", "e")


def test_error_says_when_to_try_again() -> None:
    limiter = Limiter()
    for _ in range(3):
        limiter.fail("a", "e")
    with pytest.raises(TooManyAttempts, match="try again in 10s"):
        limiter.limiter.record_failure("a", "e")


def test_guesses_from_elsewhere_lock_out_no_one() -> None:
    limiter = Limiter()
    for second in range(600):
        limiter.now = second
        for number in range(20):
            limiter.fail(f"attacker {number}", "e", SHORT)
        assert limiter.is_checked("home", "e")


def test_login_clears_earlier_failures() -> None:
    limiter = Limiter()
    for _ in range(2):
        limiter.fail("a", "e")
    limiter.limiter.record_success("a", "e")
    assert [limiter.fail("a", "e") for _ in range(4)] == [True] * 3 + [False]


def test_addresses_of_one_ipv6_network_count_as_one() -> None:
    limiter = Limiter()
    failures = [limiter.fail(f"ipv6:[2001:db8::{n:x}]", "e") for n in range(5)]
    assert failures == [True] * 3 + [False] * 2
    assert limiter.fail("ipv6:[2001:db8:0:1::1]", "e")


def test_secrets_without_an_entity_share_a_budget() -> None:
    limiter = SharedAttemptLimiter(lambda: 0.0, Rate.every(10, burst=3))
    for _ in range(3):
        limiter.record_failure()
    with pytest.raises(TooManyAttempts):
        limiter.record_failure()
