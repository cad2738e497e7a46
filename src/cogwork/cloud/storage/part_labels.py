"""A migration that assigns labels to the parts of old clouds."""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import NamedTuple

from cogwork.cloud.storage.host_label import label_candidates
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query


class _NamedPart(NamedTuple):
    id: str
    name: str
    location_id: str


def label_parts(tx: Transaction) -> None:
    """Assign labels to all parts. The oldest part with a label keeps it.

    Other parts with the same label get a new one.
    """
    parts = query(
        tx,
        _NamedPart,
        "SELECT part.id, part.name, machine.location_id FROM part "
        "JOIN machine ON machine.id = part.machine_id WHERE part.deleted_at IS NULL "
        "ORDER BY part.created_at, part.id",
    )
    taken: set[tuple[str, str]] = set()
    for part in parts:
        labels = itertools.chain([_former_label(part.name)], label_candidates(part.name, part.id))
        found = next(
            (part.location_id, each) for each in labels if (part.location_id, each) not in taken
        )
        taken.add(found)
        tx.execute(
            "INSERT INTO host_label (location_id, label, part_id) VALUES (?, ?, ?)",
            *(*found, part.id),
        )


def _former_label(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60] or "machine"
