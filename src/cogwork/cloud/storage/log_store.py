"""The interface of an engine for the logs of machines.

A line is kept for at least 30 days by the clock of the cloud, because the clock of a machine may be
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from cogwork.core.errors import CogworkError

RETENTION: Final = 30 * 24 * 3600 * 1_000_000
"""Microseconds for which lines are kept."""


class LogsUnavailable(CogworkError):
    """The logs cannot be read or written at the moment."""

    status = "UNAVAILABLE"


class SearchTooSlow(CogworkError):
    """A search through a log exceeds its time limit."""

    status = "DEADLINE_EXCEEDED"


class LogLine(NamedTuple):
    part_id: str
    time: int
    """The time of the line by the machine's clock, in microseconds since 1970."""
    level: str
    logger: str
    message: str
    entry: bytes
    """The complete received entry, serialized."""


class LogPosition(NamedTuple):
    """The position of a line in the log, which is ordered by the time of receipt."""

    day: str
    """The day of receipt, such as `2026-11-17`."""
    number: int


@dataclass(frozen=True, slots=True)
class LogQuery:
    part_id: str
    text: str = ""
    """Only messages that contain this text, ignoring case."""
    levels: frozenset[str] = frozenset()
    """Only these levels; all if empty."""
    logger: str = ""
    """Only loggers whose names begin with this text."""
    start: int | None = None
    """Only lines at or after this time, by the clock of the machine."""
    end: int | None = None
    """Only lines before this time."""
    oldest_first: bool = False
    after: LogPosition | None = None
    """Only lines after this position, in the order of the query."""
    limit: int = 100


class LogPage(NamedTuple):
    entries: Sequence[bytes]
    last: LogPosition | None
    """The position of the last entry, if more may follow; else None."""


class LogUsage(NamedTuple):
    """The stored lines of one part and one day, in total."""

    part_id: str
    day: str
    lines: int
    bytes: int


class LogStore(Protocol):
    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        """Store lines, and return when they are on disk. Raise DiskLow or LogsUnavailable."""

    async def read(self, query: LogQuery, now: int) -> LogPage:
        """Return lines that were received within the last 30 days, newest first by default.

        Several reads run at the same time. A canceled read ends at once. Raise SearchTooSlow if the
        time limit is exceeded.
        """

    async def expire(self, now: int) -> None:
        """Remove lines that are older than 30 days. No other method removes lines."""

    async def measure(self, now: int) -> Sequence[LogUsage]:
        """Return the usage of each part and day, for lines received within the last 30 days."""

    async def aclose(self) -> None: ...


def day_of(microseconds: int) -> str:
    """Return the day of a time in UTC, such as `2026-11-17`."""
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d")
