"""Parsing of schedules and their due times."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cogwork.config.schema.schedule import (
    Continuous,
    Cron,
    Every,
    LocalZone,
    Schedule,
    parse_schedule,
)

BERLIN = ZoneInfo("Europe/Berlin")
YEAR = 365 * 86400


def berlin(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


def next_dues(line: str, after: float, count: int) -> list[str]:
    found = []
    for _ in range(count):
        after = Cron(line).next(after, BERLIN)
        found.append(datetime.fromtimestamp(after, BERLIN).isoformat(sep=" ", timespec="minutes"))
    return found


class TestParseSchedule:
    @pytest.mark.parametrize(
        ("text", "schedule"),
        [
            ("10s", Every(10.0)),
            ("1h30m", Every(5400.0)),
            ("10ms", Every(0.01)),
            (" .5s ", Every(0.5)),
            ("+1m", Every(60.0)),
            ("*/15 * * * *", Cron("*/15 * * * *")),
            ("  0 3  * * mon-fri ", Cron("0 3 * * mon-fri")),
            ("*/5 * * * * *", Cron("*/5 * * * * *")),
            ("0 0 29 2 *", Cron("0 0 29 2 *")),
            ("continuous", Continuous()),
            ("Continuous", Continuous()),
        ],
    )
    def test_valid_schedules_are_parsed(self, text: str, schedule: Schedule) -> None:
        assert parse_schedule(text) == schedule

    @pytest.mark.parametrize(
        ("text", "advice"),
        [
            ("", '"" is not a schedule; write a duration such as "10m", a cron expression such as'),
            ("   ", "is not a schedule"),
            ("hourly", '"hourly" is not a schedule; write a duration'),
            ("every 5 minutes", 'or "continuous"'),
            ("10", '"10" is not a duration; write it like "5m"'),
            ("10 m", "is not a schedule"),
            ("0s", '"0s" is too short; the minimum is 10ms'),
            ("-5m", '"-5m" is too short'),
            ("9.999ms", 'write "continuous" to run without a pause'),
            ("60 * * * *", '"60 * * * *" is not a cron expression: invalid minute; the fields are'),
            ("0 0 * * * fry", "invalid day-of-week"),
            ("0 24 * * *", "invalid hour"),
            (
                "99 * * * * *",
                "invalid second; the fields are minute, hour, day of month, month",
            ),
            ("0 0 30 2 *", "invalid day-of-month"),
            ("0 0 */40 * MON#2", '"0 0 */40 * MON#2" never matches a date'),
            ("0 * * * * * *", "is not a schedule"),
            ("1" * 201, "the schedule exceeds 200 characters"),
        ],
    )
    def test_invalid_schedules_raise_with_advice(self, text: str, advice: str) -> None:
        with pytest.raises(ValueError) as refused:
            parse_schedule(text)
        assert advice in str(refused.value)

    @given(st.text(alphabet="0123456789*/,-#LW? smhMONJAN.", max_size=40) | st.text())
    @example("0 0 L/2 * 5L")
    @example("* * * * ²L")
    @example("* * LW/2 * 1#1/2")
    def test_any_text_is_parsed_or_raises_value_error(self, text: str) -> None:
        try:
            schedule = parse_schedule(text)
        except ValueError:
            return
        if isinstance(schedule, Cron):
            assert schedule.next(0.0, BERLIN) > 0


class TestEvery:
    @pytest.mark.parametrize("start", [0.0, 1_000_000.1, 12345.678901])
    @pytest.mark.parametrize("period", [10.0, 0.1, 7 / 3])
    def test_due_times_are_start_plus_whole_periods(self, start: float, period: float) -> None:
        every, due = Every(period), start
        for count in range(1, 10_000):
            due = every.next(due, start)
            assert due == start + count * period
            assert every.latest(due, start) == due

    @pytest.mark.long
    def test_due_times_do_not_drift_in_a_year(self) -> None:
        every, start = Every(10.0), 12345.678
        due = start
        for count in range(1, YEAR // 10 + 1):
            due = every.next(due, start)
            assert due == start + count * 10.0
        assert due == start + YEAR

    @given(
        st.floats(0.01, 1e6),
        st.floats(0, 1e9),
        st.floats(0, 1e9),
    )
    def test_now_is_between_latest_and_next(
        self, period: float, start: float, elapsed: float
    ) -> None:
        every, now = Every(period), start + elapsed
        assert every.latest(now, start) <= now < every.next(now, start)
        assert every.next(every.latest(now, start), start) == every.next(now, start)

    def test_before_the_start_next_is_one_period_after_the_start(self) -> None:
        assert Every(10.0).next(90.0, 100.0) == 110.0
        assert Every(10.0).latest(90.0, 100.0) == 100.0


class TestCron:
    @pytest.mark.long
    def test_quarter_hours_are_regular_across_both_clock_changes(self) -> None:
        start = berlin("2026-01-01 00:00")
        due = start
        for count in range(1, YEAR // 900 + 1):
            due = Cron("*/15 * * * *").next(due, BERLIN)
            assert due == start + count * 900
        assert due == berlin("2027-01-01 00:00")

    def test_daily_schedule_is_due_every_day_of_a_year(self) -> None:
        due = berlin("2026-01-01 00:00")
        for day in range(365):
            due = Cron("0 3 * * *").next(due, BERLIN)
            morning = datetime(2026, 1, 1, 3, tzinfo=BERLIN) + timedelta(days=day)
            assert due == morning.timestamp()

    def test_skipped_local_time_is_due_after_the_clock_change(self) -> None:
        assert next_dues("30 2 * * *", berlin("2026-03-28 12:00"), 2) == [
            "2026-03-29 03:00+02:00",
            "2026-03-30 02:30+02:00",
        ]

    def test_repeated_local_time_is_due_once(self) -> None:
        assert next_dues("30 2 * * *", berlin("2026-10-24 12:00"), 2) == [
            "2026-10-25 02:30+02:00",
            "2026-10-26 02:30+01:00",
        ]

    def test_repeated_local_time_is_not_due_in_the_second_hour(self) -> None:
        assert next_dues("30 2 * * *", berlin("2026-10-25 02:10", fold=1), 1) == [
            "2026-10-26 02:30+01:00"
        ]

    def test_first_of_six_fields_is_the_second(self) -> None:
        start = berlin("2026-05-01 12:00")
        assert Cron("*/20 * * * * *").next(start + 0.5, BERLIN) == start + 20

    def test_next_is_strictly_after_the_given_time(self) -> None:
        noon = berlin("2026-05-01 12:00")
        assert Cron("0 12 * * *").next(noon - 0.001, BERLIN) == noon
        assert Cron("0 12 * * *").next(noon, BERLIN) == noon + 86400


class TestLocalZone:
    @pytest.fixture(autouse=True)
    def in_berlin(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        before = os.environ.get("TZ")
        monkeypatch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
        if before is None:
            monkeypatch.delenv("TZ")
        else:
            monkeypatch.setenv("TZ", before)
        time.tzset()

    @given(st.integers(0, YEAR * 4 // 900))
    @example(int((berlin("2026-03-29 03:00") - berlin("2024-01-01 00:00")) / 900))
    @example(int((berlin("2026-10-25 02:30") - berlin("2024-01-01 00:00")) / 900))
    @example(int((berlin("2026-10-25 02:30", fold=1) - berlin("2024-01-01 00:00")) / 900))
    def test_local_zone_matches_the_tz_variable(self, quarters: int) -> None:
        moment = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * quarters)
        here, there = moment.astimezone(LocalZone()), moment.astimezone(BERLIN)
        assert (here.isoformat(), here.fold) == (there.isoformat(), there.fold)
        assert (here.utcoffset(), here.tzname()) == (there.utcoffset(), there.tzname())
        assert here.timestamp() == moment.timestamp()

    @pytest.mark.parametrize("line", ["30 2 * * *", "*/15 * * * *", "0 0 2 * * *"])
    @pytest.mark.parametrize("start", ["2026-03-28 22:00", "2026-10-24 22:00"])
    def test_cron_in_local_zone_matches_the_named_zone(self, line: str, start: str) -> None:
        here = there = berlin(start)
        for _ in range(40):
            here, there = Cron(line).next(here, LocalZone()), Cron(line).next(there, BERLIN)
            assert here == there
