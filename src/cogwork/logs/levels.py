"""The four levels of the public API, and their names in the standard library."""

from __future__ import annotations

import enum
import logging


class Level(enum.IntEnum):
    DEBUG = logging.DEBUG
    INFO = logging.INFO
    WARN = logging.WARNING
    ERROR = logging.ERROR

    @classmethod
    def parse(cls, text: str) -> Level:
        """Any case; `warning` is `warn`."""
        word = text.strip().lower()
        try:
            return cls["WARN" if word == "warning" else word.upper()]
        except KeyError:
            names = ", ".join(level.name.lower() for level in cls)
            raise ValueError(f'"{text}" is not a log level; the levels are {names}') from None
