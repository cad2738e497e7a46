"""A cache of built documents for parts, which detects changes of their sources.

Machines ask every few seconds, and the answer rarely changes. Building a configuration is much
slower than reading its sources. So a cached document is used if the same reads return the same rows
again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Final, NamedTuple

from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.storage.recorded_reads import RecordedRead, RecordingTransaction, are_current
from cogwork.cloud.storage.records import Transaction

_MAX_BYTES: Final = 64 << 20

_UNUSED: Final = frozenset({"last_access_at", "restart_requested_at"})
"""Fields of a part that change often, and do not affect its documents."""
_used_fields: Final = attrgetter(
    *(each.name for each in fields(LocatedPart) if each.name not in _UNUSED)
)

Build = Callable[[Transaction, LocatedPart], bytes]


class _Entry(NamedTuple):
    part: int
    """The hash of the fields of the part that affect its documents."""
    reads: list[RecordedRead]
    content: bytes


class PartCache:
    """A cache that the threads of the records use."""

    def __init__(self, build: Build, max_bytes: int = _MAX_BYTES) -> None:
        """`build` must depend only on its arguments and on what it reads."""
        self._build = build
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """Entries by part ID, the least recently used first."""
        self._max_bytes = max_bytes
        self._bytes = 0

    def read(self, tx: Transaction, part: LocatedPart) -> bytes:
        """Return the document of a part, from the cache if it is current."""
        entry = self._entries.get(part.id)
        if entry is not None and _is_current(entry, tx, part):
            with self._lock:
                if part.id in self._entries:
                    self._entries.move_to_end(part.id)
            return entry.content
        recording = RecordingTransaction(tx)
        content = self._build(recording, part)
        self._keep(part.id, _Entry(_hash_part(part), recording.reads, content))
        return content

    def _keep(self, part: str, entry: _Entry) -> None:
        with self._lock:
            if (former := self._entries.pop(part, None)) is not None:
                self._bytes -= len(former.content)
            self._entries[part] = entry
            self._bytes += len(entry.content)
            while self._bytes > self._max_bytes:
                _, oldest = self._entries.popitem(last=False)
                self._bytes -= len(oldest.content)


def _is_current(entry: _Entry, tx: Transaction, part: LocatedPart) -> bool:
    return entry.part == _hash_part(part) and are_current(tx, entry.reads)


def _hash_part(part: LocatedPart) -> int:
    return hash(_used_fields(part))
