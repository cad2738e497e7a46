import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core.backoff import Backoff

BACKOFF = Backoff(first=0.5, longest=30.0)


@pytest.mark.parametrize(
    ("failures", "least", "most"),
    [(2, 0.5, 1.0), (3, 1.0, 2.0), (6, 8.0, 16.0), (7, 15.0, 30.0), (10_000, 15.0, 30.0)],
)
def test_delay_doubles_up_to_the_longest_with_jitter(
    failures: int, least: float, most: float
) -> None:
    rng = random.Random(1)
    delays = [BACKOFF.delay(failures, rng) for _ in range(1000)]
    assert least <= min(delays) < least * 1.1
    assert most * 0.9 < max(delays) <= most


def test_first_delay_is_fixed() -> None:
    assert BACKOFF.delay(1, random.Random(1)) == 0.5


@given(st.integers(1, 10**6), st.integers())
def test_delay_is_always_between_the_limits(failures: int, seed: int) -> None:
    assert 0.5 <= BACKOFF.delay(failures, random.Random(seed)) <= 30.0
