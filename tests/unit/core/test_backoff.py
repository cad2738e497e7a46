import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.backoff import Backoff, RetryPolicy

POLICY = RetryPolicy(first=0.5, maximum=30.0)


@pytest.mark.parametrize(
    ("failures", "least", "most"),
    [(2, 0.5, 1.0), (3, 1.0, 2.0), (6, 8.0, 16.0), (7, 15.0, 30.0), (10_000, 15.0, 30.0)],
)
def test_delay_doubles_up_to_the_maximum_with_jitter(
    failures: int, least: float, most: float
) -> None:
    policy = replace(POLICY, rng=random.Random(1))
    delays = [policy.delay(failures) for _ in range(1000)]
    assert least <= min(delays) < least * 1.1
    assert most * 0.9 < max(delays) <= most


def test_first_delay_is_fixed() -> None:
    assert POLICY.delay(1) == 0.5


@given(st.integers(1, 10**6), st.integers())
def test_delay_is_always_between_the_limits(failures: int, seed: int) -> None:
    assert 0.5 <= replace(POLICY, rng=random.Random(seed)).delay(failures) <= 30.0


def test_backoff_counts_failures_until_it_is_reset() -> None:
    backoff = Backoff(RetryPolicy(first=0.1, maximum=0.5, jitter=0.0))
    assert [backoff.next_delay() for _ in range(4)] == [0.1, 0.2, 0.4, 0.5]
    assert (backoff.failures, backoff.delay) == (4, 0.5)
    backoff.reset()
    assert (backoff.failures, backoff.delay) == (0, 0.0)
    assert backoff.next_delay() == 0.1


def test_users_of_one_policy_count_separately() -> None:
    policy = RetryPolicy(first=1.0, maximum=8.0, jitter=0.0)
    one, other = Backoff(policy), Backoff(policy)
    one.next_delay()
    assert one.next_delay() == 2.0
    assert other.next_delay() == 1.0
