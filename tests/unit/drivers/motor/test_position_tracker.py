from __future__ import annotations

import pytest

from cogwork.drivers.motor.position_tracker import PositionReading, PositionTracker


def track_positions(*turned: float, tick: float = 0.0025) -> float:
    """Read the position every 10 ms, at up to four revolutions per second."""
    looks = [PositionReading(each, 0.01 * place, 0.01 * place) for place, each in enumerate(turned)]
    travel = PositionTracker(looks[0], max_speed=4.0, tick_size=tick)
    for look in looks[1:]:
        travel.add(look)
    return travel.position


@pytest.mark.parametrize(
    ("turned", "here"),
    [
        ([7.0, 7.02, 7.04], 7.04),
        ([7.0, 7.02, 0.0, 0.02], 7.04),
        ([7.0, 7.02, 0.02, 0.04], 7.06),
        ([7.0, 6.98, -0.02, -0.04], 6.94),
        ([7.0, 0.0, 0.04, 0.08, 0.0, 0.04], 7.12),
        ([-0.02, 0.0, 0.02], 0.02),
        ([0.02, 0.0, -0.02], -0.02),
        # Faster than it should be, and nowhere near zero.
        ([7.0, 8.0], 8.0),
    ],
)
def test_position_continues_when_the_encoder_is_reset(turned: list[float], here: float) -> None:
    assert track_positions(*turned) == pytest.approx(here)


def test_single_tick_is_not_a_jump() -> None:
    assert track_positions(-2, -1, 0, 1, tick=1.0) == 1
    assert track_positions(3, 2, 1, 0, tick=1.0) == 0
    assert track_positions(3, 0, 1, tick=1.0) == 4


def test_impossible_jump_counts_as_a_reset() -> None:
    travel = PositionTracker(
        PositionReading(7.0, 0.0, 0.0), max_speed=4.0, tick_size=0.0025, impossible_speed=40.0
    )
    travel.add(PositionReading(-90.0, 0.01, 0.01))
    assert travel.position == 7.0
    travel.add(PositionReading(-89.98, 0.02, 0.02))
    assert travel.position == pytest.approx(7.02)


def test_slow_answer_allows_a_long_distance() -> None:
    travel = PositionTracker(
        PositionReading(-3.0, asked_at=0.0, answered_at=0.9), max_speed=4.0, tick_size=0.0025
    )
    travel.add(PositionReading(0.5, asked_at=0.91, answered_at=0.92))
    assert travel.position == 0.5
