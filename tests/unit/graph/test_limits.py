import pytest

from cogwork.graph.limits import slow_warning_times


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
def test_slow_warning_times_end_with_the_limit(limit: float, moments: list[float]) -> None:
    assert list(slow_warning_times(limit)) == moments
