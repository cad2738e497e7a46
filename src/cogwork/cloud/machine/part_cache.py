"""Keeps what is made for each part while nothing of what it is made of changes.

Machines ask every few seconds, and nearly always get what they have. Building a configuration takes
far longer than reading what it is made of, so a kept one is used if its reads give the same again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from cogwork.cloud.storage.records import Row, Transaction, Value

_MAX_BYTES: Final = 64 << 20
_UNUSED: Final = frozenset({"last_access_at", "restart_requested_at"})
"""Columns of a part that change often, and that are not in its configuration."""

Build = Callable[[Transaction, Row], bytes]


class _Read(NamedTuple):
    sql: str
    values: tuple[Value, ...]
    found: int
    """The hash of the rows."""


class _Entry(NamedTuple):
    part: int
    """The hash of the part's row."""
    reads: list[_Read]
    content: bytes


class PartCache:
    """It is used by the threads that read the records."""

    def __init__(self, build: Build, max_bytes: int = _MAX_BYTES) -> None:
        """`build` depends on nothing that changes but its arguments."""
        self._build = build
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        """By the ID of a part, the one that was not used for longest first."""
        self._max_bytes = max_bytes
        self._bytes = 0

    def read(self, tx: Transaction, part: Row) -> bytes:
        """Return what is made for a part, given its row with the location of its machine."""
        entry = self._entries.get(part["id"])
        if entry is not None and _is_current(entry, tx, part):
            with self._lock:
                if part["id"] in self._entries:
                    self._entries.move_to_end(part["id"])
            return entry.content
        recording = _RecordingTransaction(tx)
        content = self._build(recording, part)
        self._keep(part["id"], _Entry(_hash_part(part), recording.reads, content))
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


class _RecordingTransaction:
    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.reads: list[_Read] = []

    def query(self, sql: str, *values: Value) -> Sequence[Row]:
        rows = self._tx.query(sql, *values)
        self.reads.append(_Read(sql, values, _hash_rows(rows)))
        return rows

    def execute(self, sql: str, *_: Value) -> int:
        raise AssertionError(f"it is built without changes: {sql}")


def _is_current(entry: _Entry, tx: Transaction, part: Row) -> bool:
    return entry.part == _hash_part(part) and all(
        _hash_rows(tx.query(read.sql, *read.values)) == read.found for read in entry.reads
    )


def _hash_part(part: Row) -> int:
    return hash(tuple(part[key] for key in part.keys() if key not in _UNUSED))  # noqa: SIM118 - rows of SQLite iterate over values


def _hash_rows(rows: Sequence[Row]) -> int:
    return hash(tuple(tuple(row[key] for key in row.keys()) for row in rows))  # noqa: SIM118
