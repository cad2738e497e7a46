"""Logs the standard output and the standard error of a program."""

from __future__ import annotations

import logging

from cogwork.logs.logger_names import OUTPUT_LOGGERS
from cogwork.subprocesses.line_level import find_level
from cogwork.subprocesses.output import OutputStream


class OutputLog:
    def __init__(self, program: logging.Logger) -> None:
        out, err = (program.getChild(name) for name in OUTPUT_LOGGERS)
        self._loggers = {
            OutputStream.STDOUT: (out, logging.INFO),
            OutputStream.STDERR: (err, logging.ERROR),
        }
        """The logger of each stream, and the level for lines that name no level."""

    def write(self, stream: OutputStream, line: str) -> None:
        logger, level = self._loggers[stream]
        logger.log(find_level(line) or level, "%s", line)
