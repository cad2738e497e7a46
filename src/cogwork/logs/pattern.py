"""Patterns of the `log` section: wildcards or regular expressions over logger names."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """Matches if either reading of its text matches the whole logger name."""

    text: str
    readings: tuple[re.Pattern[str], ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        if not text:
            raise ValueError("the pattern is empty; write a logger name, with * for anything")
        wildcard = text.replace(".", r"\.").replace("*", ".*")
        readings = []
        fault: Exception | None = None
        for source in (wildcard, text):
            try:
                readings.append(_compiled(source))
            except (re.error, OverflowError, RecursionError) as error:
                fault = error
        if not readings:
            raise ValueError(f"it is neither a wildcard nor a regular expression: {fault}")
        return cls(text, tuple(readings))

    def matches(self, logger: str) -> bool:
        return any(reading.fullmatch(logger) for reading in self.readings)


def _compiled(source: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        # Of the two readings only one is meant: what is odd about the other is nobody's concern.
        warnings.simplefilter("ignore")
        return re.compile(source)
