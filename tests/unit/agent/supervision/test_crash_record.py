"""Crashes: pauses that grow, and when there were too many."""

from __future__ import annotations

import pytest

from cogwork.agent.supervision.crash_record import CrashRecord

WINDOW = 600.0


@pytest.fixture
def crashes() -> CrashRecord:
    return CrashRecord()


def test_pauses_grow_up_to_a_minute(crashes: CrashRecord) -> None:
    delays = []
    for number in range(10):
        crashes.add(float(number))
        delays.append(crashes.delay(9.0))
    for number, delay in enumerate(delays):
        doubled = min(2.0**number, 60.0)
        assert max(1.0, doubled / 2) <= delay <= doubled


def test_third_crash_in_ten_minutes_is_a_loop(crashes: CrashRecord) -> None:
    for time in (0.0, 1.0, WINDOW):
        assert not crashes.is_loop(time)
        crashes.add(time)
    assert crashes.is_loop(WINDOW)
    assert not crashes.is_loop(WINDOW + 0.5)  # the first is too long ago


def test_old_crashes_do_not_lengthen_the_pause(crashes: CrashRecord) -> None:
    for _ in range(8):
        crashes.add(0.0)
    assert crashes.delay(WINDOW) >= 30
    assert crashes.delay(WINDOW + 1) == 1


def test_another_version_begins_anew(crashes: CrashRecord) -> None:
    for _ in range(3):
        crashes.add(0.0)
    crashes.clear()
    assert not crashes.is_loop(0.0)
