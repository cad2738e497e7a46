"""The four log levels of the public API."""

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
        """Parse a level name, ignoring case; `warning` is an alias of `warn`."""
        levels = {level.name.lower(): level for level in cls}
        level = {**levels, "warning": cls.WARN}.get(text.strip().lower())
        if level is None:
            raise ValueError(f'"{text}" is not a log level; the levels are {", ".join(levels)}')
        return level
