"""The logs of machines: what an engine must offer to store them.

Nothing deletes a line before it is 30 days old, by the clock of the cloud: the clock of a machine
may be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

from cogwork.core.errors import CogworkError

RETENTION: Final = 30 * 24 * 3600 * 1_000_000
"""Microseconds."""


class LogsUnavailable(CogworkError):
    """The logs cannot be read or written now."""

    status = "UNAVAILABLE"


class SearchTooSlow(CogworkError):
    """A search through a log takes longer than its budget."""

    status = "DEADLINE_EXCEEDED"


class LogLine(NamedTuple):
    part_id: str
    time: int
    """By the clock of the machine, in microseconds since 1970."""
    level: str
    logger: str
    message: str
    entry: bytes
    """The whole entry as it was received, serialized."""


class LogPosition(NamedTuple):
    """Where a line is in the log: lines are ordered by when they were received."""

    day: str
    """`2026-11-17`"""
    number: int


@dataclass(frozen=True, slots=True)
class LogQuery:
    part_id: str
    text: str = ""
    """Only messages that contain it, in upper or lower case."""
    levels: frozenset[str] = frozenset()
    """Only these; all if empty."""
    logger: str = ""
    """Only loggers whose names begin with it."""
    start: int | None = None
    """Only lines of this time or later, by the clock of the machine."""
    end: int | None = None
    """Only lines before this time."""
    oldest_first: bool = False
    after: LogPosition | None = None
    """Only lines that follow this one, in the order of the query."""
    limit: int = 100


class LogPage(NamedTuple):
    entries: Sequence[bytes]
    last: LogPosition | None
    """Of the last entry, if there may be more."""


class LogUsage(NamedTuple):
    """What is stored of the lines that a part sent on one day."""

    part_id: str
    day: str
    lines: int
    bytes: int


class LogStore(Protocol):
    async def append(self, lines: Sequence[LogLine], received_at: int) -> None:
        """Store lines. Returns when they are on disk. Raise DiskLow or LogsUnavailable."""

    async def read(self, query: LogQuery, now: int) -> LogPage:
        """Return lines that were received within the last 30 days, newest first by default.

        Several reads run at the same time. A read ends with its caller, and with SearchTooSlow
        when its time is over.
        """

    async def expire(self, now: int) -> None:
        """Remove the lines that are older than 30 days. Nothing else removes lines."""

    async def measure(self, now: int) -> Sequence[LogUsage]:
        """Return what is stored and not older than 30 days."""

    async def aclose(self) -> None: ...


def day_of(microseconds: int) -> str:
    """Return the day of a time in UTC: `2026-11-17`."""
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).strftime("%Y-%m-%d")
