"""Seals secrets with a new sealing key after the rotation."""

from __future__ import annotations

from typing import Final, NamedTuple

from cogwork.cloud.keys.cloud_key import KeyPurpose
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query

SEALED_TABLES: Final = ("api_key", "secret")
"""Tables with a column `sealed` and the primary key `id`."""
_BATCH: Final = 200
"""Rows per transaction. It is small, so that other writers wait only for milliseconds."""


class _Sealed(NamedTuple):
    id: str
    sealed: str


def reseal_batch(tx: Transaction, keyring: Keyring, active: str) -> bool:
    """Seal a batch of secrets with the sealing key that has the ID `active`.

    When all secrets are sealed with this key, delete the former sealing keys, and return True.
    """
    left = _BATCH
    for table in SEALED_TABLES:
        rows = query(
            tx,
            _Sealed,
            f"SELECT id, sealed FROM {table} WHERE sealed <> '' AND sealed NOT LIKE ? LIMIT ?",  # noqa: S608 - a constant
            *(f"{active}:%", left),
        )
        for row in rows:
            sealed = keyring.seal(keyring.unseal(row.sealed))
            tx.execute(f"UPDATE {table} SET sealed = ? WHERE id = ?", sealed, row.id)  # noqa: S608
        left -= len(rows)
        if left <= 0:
            return False
    tx.execute(
        "DELETE FROM cloud_key WHERE purpose = ? AND id <> ? AND active_from <= "
        "(SELECT active_from FROM cloud_key WHERE id = ?)",
        *(KeyPurpose.SEALING, active, active),
    )
    return True
