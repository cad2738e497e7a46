"""Host labels of parts in the records. A label belongs to one part of its location.

The former label of a part stays its alias for 90 days, the lifetime of a certificate, so that
clients have time to change. Certificates include aliases. No other part gets a label before the
last certificate with it has expired.
"""

from __future__ import annotations

from typing import Final

from cogwork.cloud.storage.host_label import label_candidates
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select, select_one
from cogwork.cloud.storage.tables import HostLabelRow

CERTIFICATE_DAYS: Final = 90
_ALIAS_TIME: Final = CERTIFICATE_DAYS * 24 * 3600 * 1_000_000
_MAX_ALIASES: Final = 10
"""Maximum number of aliases in a certificate."""


def assign_label(tx: Transaction, now: int, part_id: str, location: str, name: str) -> None:
    """Assign the label for a part's name and location. The former label becomes an alias."""
    tx.execute(
        "DELETE FROM host_label WHERE location_id = ? AND until <= ?", location, now - _ALIAS_TIME
    )
    label = next(
        each
        for each in label_candidates(name, part_id)
        if _find_holder(tx, location, each) in (None, part_id)
    )
    retire_label(tx, now, part_id)
    # Delete the alias if the new label was an alias of the same part.
    tx.execute(
        "DELETE FROM host_label WHERE location_id = ? AND label = ? AND part_id = ?",
        *(location, label, part_id),
    )
    insert(tx, HostLabelRow(location, label, part_id, until=None))


def retire_label(tx: Transaction, now: int, part_id: str) -> None:
    """Make the label of a part an alias."""
    tx.execute(
        "UPDATE host_label SET until = ? WHERE part_id = ? AND until IS NULL",
        *(now + _ALIAS_TIME, part_id),
    )


def find_labeled_part(tx: Transaction, now: int, location: str, label: str) -> str | None:
    """Return the ID of the part that has this label or alias. The part may be deleted."""
    found = select_one(
        tx,
        HostLabelRow,
        "WHERE location_id = ? AND label = ? AND (until IS NULL OR until > ?)",
        *(location, label, now),
    )
    return None if found is None else found.part_id


def list_aliases(tx: Transaction, now: int, part_id: str) -> list[HostLabelRow]:
    """Return the newest aliases of a part, with their locations."""
    return select(
        tx,
        HostLabelRow,
        "WHERE part_id = ? AND until > ? ORDER BY until DESC LIMIT ?",
        *(part_id, now, _MAX_ALIASES),
    )


def _find_holder(tx: Transaction, location: str, label: str) -> str | None:
    found = select_one(tx, HostLabelRow, "WHERE location_id = ? AND label = ?", location, label)
    return None if found is None else found.part_id
