"""The row of the cloud itself: which cloud the records belong to, and when they were restored."""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

from cogwork.cloud.storage.records import Transaction, first

RESTORE_PERIOD: Final = 86_400 * 1_000_000
"""Microseconds after a restore for which failed logins of parts are not proven to be wrong."""


class CloudRecord(NamedTuple):
    id: str
    generation: int
    """Rises when records are restored, so that machines notice what is older."""
    checkpoint: int
    """Rises while the cloud is served. A copy outside of the records shows that they are older."""
    restored_at: int | None
    """Microseconds since 1970."""

    def is_recently_restored(self, now: int) -> bool:
        return self.restored_at is not None and now < self.restored_at + RESTORE_PERIOD


def read_cloud(tx: Transaction) -> CloudRecord | None:
    row = first(tx.query("SELECT id, generation, checkpoint, restored_at FROM cloud"))
    if row is None:
        return None
    return CloudRecord(row["id"], row["generation"], row["checkpoint"], row["restored_at"])


def insert_cloud(tx: Transaction, now: int) -> str:
    """Return the ID of a new cloud."""
    cloud = str(uuid.uuid4())
    tx.execute(
        "INSERT INTO cloud (id, generation, checkpoint, created_at) VALUES (?, ?, 0, ?)",
        *(cloud, now // 1_000_000, now),
    )
    return cloud


def mark_restored(tx: Transaction, now: int) -> None:
    """Begin another generation.

    Its number is a time, because it must be new also if the same backup is restored twice.
    """
    tx.execute(
        "UPDATE cloud SET restored_at = ?, generation = "
        "CASE WHEN generation >= ? THEN generation + 1 ELSE ? END",
        *(now, now // 1_000_000, now // 1_000_000),
    )


def advance_checkpoint(tx: Transaction) -> int:
    """Return the new checkpoint."""
    tx.execute("UPDATE cloud SET checkpoint = checkpoint + 1")
    (row,) = tx.query("SELECT checkpoint FROM cloud")
    return int(row["checkpoint"])
