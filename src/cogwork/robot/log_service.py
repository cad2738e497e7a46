"""The Log method of RobotService, by which modules and clients log to the machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest
from cogwork.logs.entry import format_timestamp
from cogwork.logs.rules import MODULE_LOGGER_PREFIX
from cogwork.logs.truncation import NAME_LIMIT, truncate
from cogwork.robot.access import module_of
from cogwork.wire.handlers import Stream

_END_OF_TIME = 253402300800
"""The year 10000 in seconds since 1970, which `datetime` cannot represent."""
MAX_PAST_SKEW = 24 * 3600.0
MAX_FUTURE_SKEW = 3600.0
"""Seconds by which an entry's time may differ from ours; otherwise the entry gets our time."""
TIME_SLICE = 0.002
"""Seconds between two yields to the event loop: other replies may need a dozen iterations."""

_log = logging.getLogger("rdk")


class LogService:
    def __init__(self, resolve_logger_name: Callable[[str], str | None], clock: Clock) -> None:
        """`resolve_logger_name` maps a module's logger name to ours; None if there is none."""
        self._resolve_logger_name = resolve_logger_name
        self._clock = clock

    async def log(self, request: robot.LogRequest, stream: Stream) -> robot.LogResponse:
        """Log the entries of a request.

        The sender has applied its log level, but ours may have been raised since.
        """
        module = module_of(stream.peer)
        # Check all entries first: a request is logged completely or not at all.
        async for entry in self._iterate_in_slices(request.logs):
            _check_level(entry.level)
        async for entry in self._iterate_in_slices(request.logs):
            self._emit(_to_log_record(entry, self._clock.time()), module)
        return robot.LogResponse()

    async def _iterate_in_slices(
        self, entries: Iterable[common.LogEntry]
    ) -> AsyncIterator[common.LogEntry]:
        """Yield the entries, and yield to the event loop after each time slice."""
        started = self._clock.monotonic()
        for entry in entries:
            yield entry
            if self._clock.monotonic() - started > TIME_SLICE:
                await asyncio.sleep(0)
                started = self._clock.monotonic()

    def _emit(self, record: logging.LogRecord, module: str) -> None:
        ours = self._resolve_logger_name(record.name)
        if ours is None:
            if module:
                record.name = f"{MODULE_LOGGER_PREFIX}{module}.{record.name}"
            # Not through a logger of that name, because loggers are never freed.
            _log.handle(record)
        elif (logger := logging.getLogger(ours)).isEnabledFor(record.levelno):
            record.name = ours
            logger.handle(record)


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}


def _check_level(level: str) -> None:
    if level.lower() not in _LEVELS:
        shown = truncate(level, limit=NAME_LIMIT)
        raise InvalidRequest(f'"{shown}" is not a log level; use one of {", ".join(_LEVELS)}')


def _to_log_record(entry: common.LogEntry, now: float) -> logging.LogRecord:
    level = _LEVELS[entry.level.lower()]
    record = logging.makeLogRecord(
        {
            "name": truncate(entry.logger_name or "rdk", limit=NAME_LIMIT),
            "levelno": level,
            "levelname": logging.getLevelName(level),
            "msg": entry.message,
        }
    )
    if 0 < entry.time.seconds < _END_OF_TIME:
        claimed = entry.time.ToNanoseconds() / 1e9
        if now - MAX_PAST_SKEW <= claimed <= now + MAX_FUTURE_SKEW:
            record.created = claimed
        else:
            record.created = now
            record.fields = {"client_time": format_timestamp(claimed)}
        record.msecs = record.created * 1000 % 1000
    return record
