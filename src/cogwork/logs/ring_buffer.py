"""A ring buffer of recent log entries, for queries to a running machine."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cogwork.logs.entry import Entry
from cogwork.logs.pattern import Pattern

MAX_LINES = 5000
MAX_BYTES = 16 << 20
_OVERHEAD = 500
"""Estimated bytes of an entry, excluding its texts."""


@dataclass(frozen=True, slots=True)
class RingQuery:
    level: int = 0
    logger: Pattern | None = None
    text: str = ""
    since: float = 0.0
    """Time of the oldest entry to return, in seconds since 1970."""

    def matches(self, entry: Entry) -> bool:
        return (
            entry.level >= self.level
            and entry.time >= self.since
            and (self.logger is None or self.logger.matches(entry.logger))
            and (not self.text or self.text.lower() in entry.message.lower())
        )


class RingBuffer:
    """A buffer limited by lines and bytes, which evicts the oldest entries."""

    def __init__(self, lines: int = MAX_LINES, size: int = MAX_BYTES) -> None:
        self._entries: deque[tuple[int, Entry]] = deque()
        self._numbers = itertools.count(1)
        self._max_lines = lines
        self._max_bytes = size
        self._size = 0

    def put(self, entry: Entry) -> None:
        """Append an entry. Only one thread at a time may call this."""
        self._entries.append((next(self._numbers), entry))
        self._size += estimate_size(entry)
        while len(self._entries) > self._max_lines or self._size > self._max_bytes:
            _, oldest = self._entries.popleft()
            self._size -= estimate_size(oldest)

    def read_after(
        self, number: int, query: RingQuery, limit: int = MAX_LINES
    ) -> tuple[int, list[Entry]]:
        """Return the number of the last examined line, and the matching entries after `number`.

        At most `limit` lines are examined.
        """
        if not self._entries or self._entries[-1][0] <= number:
            return number, []
        # Another thread may append meanwhile.
        entries = self._entries.copy()
        skipped = max(0, number + 1 - entries[0][0])
        examined = list(itertools.islice(entries, skipped, skipped + limit))
        found = [entry for _, entry in examined if query.matches(entry)]
        return examined[-1][0], found


def estimate_size(entry: Entry) -> int:
    """Return the approximate memory of an entry in bytes."""
    texts = (
        entry.logger,
        entry.place,
        entry.message,
        entry.trace,
        *_nested_values(dict(entry.fields)),
    )
    return _OVERHEAD + sum(map(sys.getsizeof, texts))


def _nested_values(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _nested_values(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _nested_values(each)
