from __future__ import annotations

import logging

import pytest

from cogwork.logs.levels import Level


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("debug", Level.DEBUG),
        ("info", Level.INFO),
        ("warn", Level.WARN),
        ("warning", Level.WARN),
        ("error", Level.ERROR),
        ("Info", Level.INFO),
        ("WARNING", Level.WARN),
        (" Error ", Level.ERROR),
    ],
)
def test_level_is_parsed_in_any_case(text: str, level: Level) -> None:
    assert Level.parse(text) is level


@pytest.mark.parametrize(
    "text", ["", " ", "verbose", "critical", "fatal", "warnings", "10", "__members__", "ınfo"]
)
def test_unknown_level_raises(text: str) -> None:
    with pytest.raises(ValueError, match="is not a log level; the levels are debug, info, warn, e"):
        Level.parse(text)


def test_levels_equal_those_of_the_standard_library() -> None:
    assert [level.value for level in Level] == [
        logging.DEBUG,
        logging.INFO,
        logging.WARNING,
        logging.ERROR,
    ]
    assert sorted(Level) == list(Level)
