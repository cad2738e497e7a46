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
        levels = {level.name.lower(): level for level in cls}
        level = {**levels, "warning": cls.WARN}.get(text.strip().lower())
        if level is None:
            raise ValueError(f'"{text}" is not a log level; the levels are {", ".join(levels)}')
        return level
