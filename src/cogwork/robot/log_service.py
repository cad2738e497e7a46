"""RobotService: what modules and clients have to say."""

from __future__ import annotations

import logging
from collections.abc import Callable

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.errors import InvalidRequest
from cogwork.wire.handlers import Stream

_END_OF_TIME = 253402300800
"""Seconds until the year 10000, which no calendar has."""

_log = logging.getLogger("rdk")


class LogService:
    def __init__(self, known: Callable[[str], str | None]) -> None:
        """`known`: the logger here of one that a module names, if it is one of ours."""
        self._known = known

    async def log(self, request: robot.LogRequest, _: Stream) -> robot.LogResponse:
        """Whoever sent them has applied its level, which may have been raised here since."""
        for record in [_record(entry) for entry in request.logs]:
            ours = self._known(record.name)
            if ours is None:
                # Not by the logger of that name, which would be kept for ever.
                _log.handle(record)
            elif (logger := logging.getLogger(ours)).isEnabledFor(record.levelno):
                record.name = ours
                logger.handle(record)
        return robot.LogResponse()


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}


def _record(entry: common.LogEntry) -> logging.LogRecord:
    level = _LEVELS.get(entry.level.lower())
    if level is None:
        raise InvalidRequest(
            f'"{entry.level}" is not a log level; it is one of {", ".join(_LEVELS)}'
        )
    record = logging.makeLogRecord(
        {
            "name": entry.logger_name or "rdk",
            "levelno": level,
            "levelname": logging.getLevelName(level),
            "msg": entry.message,
        }
    )
    if 0 < entry.time.seconds < _END_OF_TIME:
        record.created = entry.time.ToNanoseconds() / 1e9
        record.msecs = entry.time.nanos / 1e6 % 1000
    return record
