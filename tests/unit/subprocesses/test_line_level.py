from __future__ import annotations

import logging

import pytest

from cogwork.subprocesses.line_level import find_level


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("WARNING:root:hot", logging.WARNING),
        ("2026-11-17 12:00:01,123 INFO acme.arm: moved", logging.INFO),
        ("[error] no such file", logging.ERROR),
        ("Error: no such file", logging.ERROR),
        ("warning: unused variable", logging.WARNING),
        ('{"time": 1, "level": "warn", "msg": "x"}', logging.WARNING),
        ("time=12 level=debug msg=x", logging.DEBUG),
        ("E1117 something", None),
        ("<err> x", logging.ERROR),
        ("FATAL could not bind", logging.ERROR),
        ("Traceback (most recent call last):", None),
        ("error handling is enabled", None),
        ("the info desk", None),
        ("/var/log/ERROR.txt written", None),
        ("X" * 200 + " ERROR", None),
        ("", None),
    ],
)
def test_level_of_a_line(line: str, level: int | None) -> None:
    assert find_level(line) == level
