"""Applies the level rules to all loggers of the process, including future loggers."""

from __future__ import annotations

import logging

from cogwork.logs.rules import LevelRules

_MIN_LEVELS = {
    # grpc logs an error with a traceback whenever a client disconnects during a call.
    "grpc._cython.cygrpc": logging.CRITICAL,
    "asyncio": logging.WARNING,
    # uvicorn warns of every client that tries TLS first, as the SDK does.
    "uvicorn.error": logging.ERROR,
}
"""Minimum levels of libraries that log too much."""


class LoggerLevels:
    """Sets the levels of all loggers. Create one per process: loggers are global."""

    def __init__(self) -> None:
        self._rules = LevelRules()
        self._previous_class = logging.getLoggerClass()

    def install(self) -> None:
        logging.setLoggerClass(self._make_logger_class())
        self.apply(self._rules)

    def apply(self, rules: LevelRules) -> None:
        self._rules = rules
        for name, logger in tuple(logging.Logger.manager.loggerDict.items()):
            if isinstance(logger, logging.Logger):
                # Do not use `setLevel`: it clears the caches of all loggers, which would take
                # quadratic time.
                logger.level = self._level_of(name)
        # The root level must not filter: only the level of each logger decides.
        logging.getLogger().setLevel(logging.DEBUG)

    def uninstall(self) -> None:
        logging.setLoggerClass(self._previous_class)

    def _level_of(self, name: str) -> int:
        return max(self._rules.level_of(name), _MIN_LEVELS.get(name, logging.NOTSET))

    def _make_logger_class(self) -> type[logging.Logger]:
        level_of, base = self._level_of, self._previous_class

        class LeveledLogger(base):  # type: ignore[misc, valid-type]
            def __init__(self, name: str, level: int = logging.NOTSET) -> None:
                super().__init__(name, level or level_of(name))

        return LeveledLogger
