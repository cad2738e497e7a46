"""Finds the log level in a line of a program's output."""

from __future__ import annotations

import logging
import re

_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "err": logging.ERROR,
    "critical": logging.ERROR,
    "crit": logging.ERROR,
    "fatal": logging.ERROR,
    "panic": logging.ERROR,
}
_WORDS = "|".join(_LEVELS)
_HEAD_LENGTH = 120
"""Number of characters in which the level must be: it may follow the time and a logger name."""
_FIELD = re.compile(rf'\b(?:level|lvl|severity)"?\s*[=:]\s*"?({_WORDS})\b', re.IGNORECASE)
_START = re.compile(rf"\s*(?:[\[<(]({_WORDS})[\])>]|({_WORDS})\s?[:|])", re.IGNORECASE)
_UPPER_CASE = re.compile(rf"(?<![\w./=-])({_WORDS.upper()})(?![\w./=-])")


def find_level(line: str) -> int | None:
    """Return the level, as a number of the standard library; None if the line has none.

    Recognized are a field (`level=info`, `"level": "info"`), a line that starts with the level
    (`Warning: …`, `[info] …`), and a word in upper case near the start (`12:00:01 INFO started`).
    """
    head = line[:_HEAD_LENGTH]
    found = _FIELD.search(head) or _START.match(head) or _UPPER_CASE.search(head)
    return _LEVELS[found[found.lastindex or 1].lower()] if found is not None else None
