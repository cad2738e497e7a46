"""The event history of the machine as JSON."""

from __future__ import annotations

from collections import defaultdict

from cogwork.core.workers import run_in_thread
from cogwork.robot.event_journal import EventJournal

_TIMEOUT = 10.0
"""Seconds to read the journal from disk."""


class History:
    """The events of all resources, read once for all requests that wait."""

    def __init__(self, journal: EventJournal) -> None:
        self._all: list[str] = []
        self._by_name: defaultdict[str, list[str]] = defaultdict(list)
        self._encoded: dict[str | None, bytes] = {}
        for text, line in journal.iter_records():
            self._all.append(text)
            name = line.get("resource")
            if isinstance(name, str):
                self._by_name[name].append(text)
                self._by_name[name.partition("/")[2]].append(text)

    def encode(self, resource: str | None = None) -> bytes:
        """Return all events as a JSON array, or those of one resource (full or short name)."""
        texts = self._all if resource is None else self._by_name.get(resource)
        if texts is None:
            return b"[]"
        if resource not in self._encoded:
            self._encoded[resource] = f"[{','.join(texts)}]".encode(errors="backslashreplace")
        return self._encoded[resource]


async def read_history(journal: EventJournal) -> History:
    return await run_in_thread("history", _TIMEOUT, History, journal)
