"""Logs the standard output and the standard error of a program."""

from __future__ import annotations

import logging

from cogwork.logs.logger_names import OUTPUT_LOGGERS
from cogwork.logs.pipeline import EXTRA_LINES
from cogwork.subprocesses.line_level import find_level
from cogwork.subprocesses.output import OutputStream
from cogwork.subprocesses.traceback_grouper import summarize


class OutputLog:
    def __init__(self, program: logging.Logger) -> None:
        out, err = (program.getChild(name) for name in OUTPUT_LOGGERS)
        self._loggers = {
            OutputStream.STDOUT: (out, logging.INFO),
            OutputStream.STDERR: (err, logging.ERROR),
        }
        """The logger of each stream, and the level for lines that name no level."""

    def write(self, stream: OutputStream, text: str) -> None:
        """Log a line, or the lines of a traceback as one entry."""
        logger, level = self._loggers[stream]
        lines = text.split("\n")
        if len(lines) == 1:
            logger.log(find_level(text) or level, "%s", text)
        else:
            logger.log(level, "%s", summarize(lines), extra={EXTRA_LINES: text})
