from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from cogwork.agent.window.calendar import CalendarWindow, find_closed_reason

NIGHTS = CalendarWindow("0 23 * * *", timedelta(hours=3))
SATURDAYS = CalendarWindow("30 6 * * SAT", timedelta(minutes=30))


def at(time: str) -> datetime:
    return datetime.fromisoformat(time)


@pytest.mark.parametrize(
    ("time", "is_open"),
    [
        ("2026-11-17 22:59:59", False),
        ("2026-11-17 23:00:00", True),
        ("2026-11-18 01:59:59", True),
        ("2026-11-18 02:00:00", False),
        ("2026-11-18 12:00:00", False),
    ],
)
def test_window_contains_its_beginning_and_not_its_end(time: str, is_open: bool) -> None:
    assert NIGHTS.is_open(at(time)) is is_open


def test_one_open_window_is_enough() -> None:
    windows = (NIGHTS, SATURDAYS)
    assert find_closed_reason(windows, at("2026-11-21 06:45")) is None
    assert find_closed_reason(windows, at("2026-11-21 07:00")) == (
        "the maintenance window opens at 2026-11-21 23:00"
    )


def test_without_windows_it_is_always_open() -> None:
    assert find_closed_reason((), at("2026-11-21")) is None


def test_long_window_may_begin_again_before_it_ends() -> None:
    hourly = CalendarWindow("0 * * * *", timedelta(hours=2))
    assert all(hourly.is_open(at(f"2026-01-01 00:{minute:02}")) for minute in range(60))


@pytest.mark.parametrize(("start", "minutes"), [("0 2 * *", 60), ("x", 60), ("0 2 * * *", 0)])
def test_mistake_is_refused(start: str, minutes: int) -> None:
    with pytest.raises(ValueError, match=r"cron line|duration"):
        CalendarWindow(start, timedelta(minutes=minutes))
