"""The row of the cloud itself: its ID, and the time of the last restore."""

from __future__ import annotations

import uuid
from typing import Final, NamedTuple

from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import first, query, query_values
from cogwork.cloud.storage.tables import CloudRow

RESTORE_PERIOD: Final = 86_400 * 1_000_000
"""For this many microseconds after a restore, the login of a part may fail although its secret is
correct: the backup may be older than the secret."""


class CloudRecord(NamedTuple):
    id: str
    checkpoint: int
    """Increases while the cloud runs. If its copy in the directory is higher, the records are from
    an older backup."""
    restored_at: int | None
    """The time of the last restore, in microseconds since 1970."""

    def is_recently_restored(self, now: int) -> bool:
        return self.restored_at is not None and now < self.restored_at + RESTORE_PERIOD


def read_cloud(tx: Transaction) -> CloudRecord | None:
    return first(query(tx, CloudRecord, "SELECT id, checkpoint, restored_at FROM cloud"))


def insert_cloud(tx: Transaction, now: int) -> str:
    """Add the row of a new cloud, and return its ID."""
    cloud = str(uuid.uuid4())
    # The column `generation` is no longer used.
    insert(tx, CloudRow(cloud, generation=0, checkpoint=0, created_at=now, restored_at=None))
    return cloud


def mark_restored(tx: Transaction, now: int) -> None:
    tx.execute("UPDATE cloud SET restored_at = ?", now)


def advance_checkpoint(tx: Transaction) -> int:
    """Increase the checkpoint, and return it."""
    tx.execute("UPDATE cloud SET checkpoint = checkpoint + 1")
    (checkpoint,) = query_values(tx, int, "SELECT checkpoint FROM cloud")
    return checkpoint
