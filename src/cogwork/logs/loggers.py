"""Gives every logger of the process the level that the rules say, also those that come later."""

from __future__ import annotations

import logging

from cogwork.logs.rules import Rules

_AT_LEAST = {
    # To it every client that goes before its answer came is an error, with a traceback.
    "grpc._cython.cygrpc": logging.CRITICAL,
    "asyncio": logging.WARNING,
    "uvicorn.error": logging.WARNING,
}
"""Libraries that say more than anybody wants to read."""


class Loggers:
    """The standard library has one tree of loggers per process: make one of these."""

    def __init__(self) -> None:
        self._rules = Rules()
        self._class_before = logging.getLoggerClass()

    def take_over(self) -> None:
        logging.setLoggerClass(self._ruled())
        # The outputs decide nothing: what a logger lets through is printed.
        logging.getLogger().setLevel(logging.DEBUG)
        self.apply(self._rules)

    def apply(self, rules: Rules) -> None:
        self._rules = rules
        for name, logger in tuple(logging.Logger.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger):
                logger.setLevel(self._level_of(name))

    def let_go(self) -> None:
        logging.setLoggerClass(self._class_before)

    def _level_of(self, name: str) -> int:
        return max(self._rules.level_of(name), _AT_LEAST.get(name, logging.NOTSET))

    def _ruled(self) -> type[logging.Logger]:
        level_of, base = self._level_of, self._class_before

        class Ruled(base):  # type: ignore[misc, valid-type]
            def __init__(self, name: str, level: int = logging.NOTSET) -> None:
                super().__init__(name, level or level_of(name))

        return Ruled
