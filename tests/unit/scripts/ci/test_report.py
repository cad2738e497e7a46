"""The table at the end of `.ci/run`, and what it does not accept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripts.ci.record import Record, read_records, write_record
from scripts.ci.report import (
    find_lost_tests,
    find_luck,
    format_counts,
    format_table,
    list_second_tries,
)

SETUP = Record("setup", 90.4)
UNIT = Record("unit 3.11", 240, ran=9000, skipped=3)


def test_table_has_a_row_for_each_step_and_their_sum() -> None:
    lucky = Record("interop", 600, ran=700, second_tries={"a::b": "why"})
    assert format_table([SETUP, UNIT, lucky]).splitlines() == [
        "step       minutes   ran  skipped  second tries",
        "setup          1.5",
        "unit 3.11      4.0  9000        3",
        "interop       10.0   700                      1",
        "all           15.5",
    ]


def test_records_are_kept_in_the_order_of_the_steps(tmp_path: Path) -> None:
    for each in (SETUP, UNIT):
        write_record(each, tmp_path)
    assert read_records(tmp_path) == [SETUP, UNIT]


class TestCounts:
    @pytest.mark.parametrize("expected", [8999, 9000])
    def test_more_tests_are_welcome(self, expected: int) -> None:
        assert not [*find_lost_tests([SETUP, UNIT], {UNIT.name: expected})]

    def test_lost_tests_are_an_error(self) -> None:
        (mistake,) = find_lost_tests([SETUP, UNIT], {UNIT.name: 9001})
        assert mistake.startswith('"unit 3.11" ran 9000 tests, and 9001 are in')
        assert mistake.endswith("find out why 1 did not run, or lower the number and say why")

    def test_skipped_tests_are_lost(self) -> None:
        assert [*find_lost_tests([Record("unit", 1, ran=5, skipped=1)], {"unit": 6})]

    def test_step_whose_tests_are_all_skipped_is_lost(self) -> None:
        assert [*find_lost_tests([Record("unit", 1, skipped=6)], {"unit": 6})]

    def test_other_computers_may_skip_tests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("platform.machine", lambda: "aarch64")
        counts = {UNIT.name: UNIT.ran + UNIT.skipped}
        assert not [*find_lost_tests([UNIT], counts)]

    def test_new_steps_need_a_number(self) -> None:
        (mistake,) = find_lost_tests([UNIT], {})
        assert mistake.endswith('has no number for "unit 3.11"; set it to 9000')

    def test_numbers_are_those_of_the_steps_with_tests(self) -> None:
        assert format_counts([UNIT, SETUP], {}) == '{\n  "unit 3.11": 9000\n}\n'

    def test_numbers_of_other_steps_stay(self) -> None:
        counts = format_counts([UNIT], {"interop": 700, UNIT.name: 1})
        assert json.loads(counts) == {"interop": 700, UNIT.name: 9000}


class TestSecondTries:
    def test_three_are_shown_and_accepted(self) -> None:
        records = [_lucky(1), _lucky(2)]
        first, *others = list_second_tries(records)
        assert first == "passed at its second try only: test 0 of 1\n  why 0"
        assert len(others) == 2
        assert not [*find_luck(records)]

    def test_four_are_an_error(self) -> None:
        (mistake,) = find_luck([_lucky(2), _lucky(2)])
        assert mistake == "4 tests needed a second try; at most 3 may"


def _lucky(tests: int) -> Record:
    tries = {f"test {number} of {tests}": f"why {number}" for number in range(tests)}
    return Record("interop", 1, ran=10, second_tries=tries)
