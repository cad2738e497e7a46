"""Patterns of the `log` section: wildcards or regular expressions over logger names."""

from __future__ import annotations

import re
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
        fault: re.error | None = None
        for source in (wildcard, text):
            try:
                readings.append(re.compile(source))
            except re.error as error:
                fault = error
        if not readings:
            raise ValueError(f"it is neither a wildcard nor a regular expression: {fault}")
        return cls(text, tuple(readings))

    def matches(self, logger: str) -> bool:
        return any(reading.fullmatch(logger) for reading in self.readings)
