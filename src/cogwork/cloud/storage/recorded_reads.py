"""Records the reads of a transaction, to check later whether they would return the same rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cogwork.cloud.storage.records import Rows, Transaction, Value


class RecordedRead(NamedTuple):
    sql: str
    values: tuple[Value, ...]
    found: int
    """The hash of the rows."""


class RecordingTransaction:
    """A transaction that allows only reads, and records them."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.reads: list[RecordedRead] = []

    def read_rows(self, sql: str, *values: Value) -> Rows:
        rows = self._tx.read_rows(sql, *values)
        self.reads.append(RecordedRead(sql, values, _hash(rows)))
        return rows

    def execute(self, sql: str, *_: Value) -> int:
        raise AssertionError(f"this transaction allows only reads, not: {sql}")


def are_current(tx: Transaction, reads: Iterable[RecordedRead]) -> bool:
    """Return whether the reads would return the same rows in this transaction."""
    return all(_hash(tx.read_rows(each.sql, *each.values)) == each.found for each in reads)


def _hash(rows: Rows) -> int:
    return hash(tuple(rows.values))
