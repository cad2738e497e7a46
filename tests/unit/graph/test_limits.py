import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.graph.limits import GraphLimits, retry_delay, slow_warning_times


@pytest.mark.parametrize(
    ("failures", "least", "most"),
    [
        (1, 0.5, 0.625),
        (2, 0.75, 1.25),
        (3, 1.5, 2.5),
        (6, 12.0, 20.0),
        (7, 22.5, 30.0),
        (8, 22.5, 30.0),
        (10_000, 22.5, 30.0),
    ],
)
def test_the_delay_doubles_up_to_thirty_seconds(failures: int, least: float, most: float) -> None:
    rng = random.Random(1)
    delays = [retry_delay(failures, GraphLimits(), rng) for _ in range(200)]
    assert least <= min(delays) < max(delays) <= most


@given(st.integers(1, 10**6), st.integers())
def test_the_delay_is_always_between_the_limits(failures: int, seed: int) -> None:
    assert 0.5 <= retry_delay(failures, GraphLimits(), random.Random(seed)) <= 30.0


@pytest.mark.parametrize(
    ("limit", "moments"),
    [
        (0.5, [0.5]),
        (2.0, [2.0]),
        (3.0, [2.0, 3.0]),
        (5.0, [2.0, 5.0]),
        (12.0, [2.0, 5.0, 10.0, 12.0]),
        (30.0, [2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]),
    ],
)
def test_slow_moments_end_with_the_limit(limit: float, moments: list[float]) -> None:
    assert list(slow_warning_times(limit)) == moments
