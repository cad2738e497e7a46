"""The last lines of the log, in memory, for whoever asks a running machine."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

from cogwork.logs.entry import Entry
from cogwork.logs.pattern import Pattern

LINES = 5000


@dataclass(frozen=True, slots=True)
class Query:
    level: int = 0
    logger: Pattern | None = None
    text: str = ""
    since: float = 0.0
    """Seconds since 1970."""

    def wants(self, entry: Entry) -> bool:
        return (
            entry.level >= self.level
            and entry.time >= self.since
            and (self.logger is None or self.logger.matches(entry.logger))
            and self.text.lower() in entry.message.lower()
        )


class Ring:
    def __init__(self, lines: int = LINES) -> None:
        self._entries: deque[tuple[int, Entry]] = deque(maxlen=lines)
        self._numbers = itertools.count(1)

    def put(self, entry: Entry) -> None:
        self._entries.append((next(self._numbers), entry))

    def after(self, number: int, query: Query) -> tuple[int, list[Entry]]:
        """What came after the line of that number and is asked for; and the last number."""
        # Another thread may add to it meanwhile.
        entries = self._entries.copy()
        found = [entry for each, entry in entries if each > number and query.wants(entry)]
        return (entries[-1][0] if entries else number), found
