from __future__ import annotations

import pytest

from cogwork.cli.table import align_rows, format_age


def test_columns_are_as_wide_as_their_widest_cell_on_a_terminal() -> None:
    rows = [("NAME", "ID"), ("日本", "1"), ("a\x1b[2J", "2"), ("é", "")]
    assert list(align_rows(rows)) == [
        "NAME      ID",
        "日本      1",
        "a\\x1b[2J  2",
        "é",
    ]


def test_table_without_rows_is_empty() -> None:
    assert list(align_rows([])) == []


@pytest.mark.parametrize(
    ("seconds", "age"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m"), (7199, "1h"), (3 * 86400, "3d")],
)
def test_age_has_one_unit(seconds: float, age: str) -> None:
    assert format_age(seconds) == age
