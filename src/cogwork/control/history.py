"""The event history of the machine as JSON."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from cogwork.core.workers import run_in_thread
from cogwork.robot.event_journal import EventJournal

MAX_LAST = 500
"""Maximum value of the query parameter `last`."""
_TIMEOUT = 10.0
"""Timeout in seconds for reading the journal from disk."""


class HistoryQuery(NamedTuple):
    resource: str | None = None
    """Return only the events of this resource (full or short name)."""
    last: int | None = None
    """Maximum number of events; the latest are returned."""


def parse_history_query(params: Mapping[str, str]) -> HistoryQuery:
    """Parse the query parameters of a request. Raise ValueError if one is invalid."""
    last = _parse_last(params["last"]) if "last" in params else None
    return HistoryQuery(params.get("resource"), last)


class History:
    """The events of all resources, read once for all waiting requests."""

    def __init__(self, records: Iterable[tuple[str, dict[str, Any]]]) -> None:
        """Create a history. `records` are the events as text and as a dictionary, oldest first."""
        self._all: list[str] = []
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._encoded: dict[HistoryQuery, bytes] = {}
        for text, line in records:
            self._all.append(text)
            name = line.get("resource")
            if isinstance(name, str):
                self._by_name[name].append(text)
                self._by_name[name.partition("/")[2]].append(text)

    def encode(self, query: HistoryQuery) -> bytes:
        """Return the matching events as a JSON array."""
        texts = self._all if query.resource is None else self._by_name.get(query.resource)
        if texts is None:
            return b"[]"
        if query not in self._encoded:
            chosen = texts if query.last is None else texts[-query.last :]
            self._encoded[query] = f"[{','.join(chosen)}]".encode(errors="backslashreplace")
        return self._encoded[query]


async def read_history(journal: EventJournal) -> History:
    return await run_in_thread("history", _TIMEOUT, lambda: History(journal.iter_records()))


async def read_latest_history(journal: EventJournal) -> History:
    """Return a history of the last `MAX_LAST` events, without reading earlier events."""

    def read() -> History:
        latest = list(itertools.islice(journal.iter_latest_records(), MAX_LAST))
        return History(reversed(latest))

    return await run_in_thread("history", _TIMEOUT, read)


def _parse_last(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_LAST)):
        number = int(text)
        if 1 <= number <= MAX_LAST:
            return number
    raise ValueError(f'"last" must be a number from 1 to {MAX_LAST}, not "{text[:100]}"')
