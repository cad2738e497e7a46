"""The Log method of RobotService, with which modules and clients log to the machine."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest
from cogwork.core.escape import TAB_WIDTH
from cogwork.logs.entry import format_timestamp
from cogwork.logs.pipeline import EXTRA_LINES
from cogwork.logs.rules import LevelOf, log_everything
from cogwork.logs.truncation import NAME_LIMIT, truncate
from cogwork.robot.middleware.access import module_of
from cogwork.robot.services.log_details import read_fields, read_place
from cogwork.wire.table.handlers import Stream

_END_OF_TIME = 253402300800
"""The year 10000 in seconds since 1970, which `datetime` cannot represent."""
MAX_PAST_SKEW = 24 * 3600.0
MAX_FUTURE_SKEW = 3600.0
"""Maximum seconds that the time of an entry may be ahead of the server's. If it is further ahead,
the server's time is used."""
TIME_SLICE = 0.002
"""Maximum seconds without yielding to the event loop. The time is short, because the reply to
another call may need a dozen iterations of the loop."""

_log = logging.getLogger("rdk")


class LogService:
    def __init__(
        self,
        resolve_logger_name: Callable[[str, str], str],
        clock: Clock,
        level_of: LevelOf = log_everything,
    ) -> None:
        """Create the service.

        `resolve_logger_name` takes the logger name of an entry and the module that sent it (empty
        for a client). It returns the logger name to use.
        """
        self._resolve_logger_name = resolve_logger_name
        self._clock = clock
        self._level_of = level_of

    async def log(self, request: robot.LogRequest, stream: Stream) -> robot.LogResponse:
        """Log the entries of a request; drop entries with an invalid level.

        Entries below the server's log level are dropped: the level may have been raised
        since they were sent.
        """
        sender = _Sender(module_of(stream.peer), self._resolve_logger_name, self._level_of)
        invalid: list[str] = []
        async for entry in self._iterate_in_slices(request.logs):
            level = _LEVELS.get(entry.level.lower())
            if level is None:
                invalid.append(entry.level)
                continue
            name, lowest = sender.resolve(truncate(entry.logger_name, limit=NAME_LIMIT))
            if level >= lowest:
                # Do not create a logger named `name`: loggers are never freed.
                _log.handle(_to_log_record(entry, name, level, self._clock.time()))
        if invalid:
            raise InvalidRequest(_invalid_level_message(invalid, len(request.logs)))
        return robot.LogResponse()

    async def _iterate_in_slices(
        self, entries: Iterable[common.LogEntry]
    ) -> AsyncIterator[common.LogEntry]:
        """Yield the entries. Let the event loop run after each time slice."""
        started = self._clock.monotonic()
        for entry in entries:
            yield entry
            if self._clock.monotonic() - started > TIME_SLICE:
                await asyncio.sleep(0)
                started = self._clock.monotonic()


class _Sender:
    """The module or client that sent a request. Caches its logger names during the request."""

    def __init__(
        self, module: str, resolve_logger_name: Callable[[str, str], str], level_of: LevelOf
    ) -> None:
        self._module = module
        self._resolve_logger_name = resolve_logger_name
        self._level_of = level_of
        self._resolved: dict[str, tuple[str, int]] = {}

    def resolve(self, name: str) -> tuple[str, int]:
        """Return the logger name to use, and the lowest level that is logged under it."""
        if name not in self._resolved:
            ours = self._resolve_logger_name(name, self._module)
            self._resolved[name] = ours, self._level_of(ours, self._module or None)
        return self._resolved[name]


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
}


_PLACE = re.compile(r"([^\s:]{1,200}):(\d{1,9})\t")
"""The location of the log call, which the Python SDK writes before the message."""

_NO_STACK = "exc_info: None, exc_text: None, stack_info: None"
"""What the Python SDK sends instead of a stack for a record without an exception."""


def _invalid_level_message(invalid: Sequence[str], count: int) -> str:
    shown = truncate(invalid[0], limit=NAME_LIMIT)
    message = f'"{shown}" is not a log level; use one of {", ".join(_LEVELS)}'
    return f"{message} (dropped {len(invalid)} of {count} entries)" if count > 1 else message


def _to_log_record(entry: common.LogEntry, name: str, level: int, now: float) -> logging.LogRecord:
    place = _PLACE.match(entry.message)
    message = entry.message[place.end() :] if place else entry.message
    record = logging.makeLogRecord(
        {
            "name": name,
            "levelno": level,
            "levelname": logging.getLevelName(level),
            # Expand tabs: the log would show them as escape sequences.
            "msg": message.expandtabs(TAB_WIDTH),
        }
    )
    if place:
        record.filename, record.lineno = place[1], int(place[2])
    elif entry.HasField("caller"):
        record.filename, record.lineno = read_place(entry.caller)
    if entry.stack and entry.stack != _NO_STACK:
        setattr(record, EXTRA_LINES, entry.stack)
    fields = read_fields(entry.fields) if entry.fields else {}
    claimed = _parse_time(entry)
    if claimed is not None:
        if now - MAX_PAST_SKEW <= claimed <= now + MAX_FUTURE_SKEW:
            record.created = claimed
        else:
            record.created = now
            fields["client_time"] = format_timestamp(claimed)
        record.msecs = record.created * 1000 % 1000
    if fields:
        record.fields = fields
    return record


def _parse_time(entry: common.LogEntry) -> float | None:
    """Return the time of an entry; None if it is missing or invalid."""
    if not 0 < entry.time.seconds < _END_OF_TIME:
        return None
    return entry.time.seconds + min(max(entry.time.nanos, 0), 999_999_999) / 1e9
