"""The records of the cloud's own keys, and key rotation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from cogwork.cloud.keys.cloud_key import (
    SCHEDULES,
    CloudKey,
    KeyPurpose,
    has_ended,
)
from cogwork.cloud.keys.key_material import create_material
from cogwork.cloud.keys.sealer import Sealer
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values, select
from cogwork.core.errors import CogworkError


class RotationPending(CogworkError):
    """The next key of this purpose already exists."""

    status = "FAILED_PRECONDITION"


def list_cloud_keys(tx: Transaction) -> list[CloudKey]:
    return select(tx, CloudKey, "ORDER BY purpose, active_from, id")


def list_part_token_keys(tx: Transaction) -> list[dict[str, Any]]:
    """Return the keys with which machines verify tokens, as entries of a JSON Web Key Set.

    The next key is included, because machines must know it before the first token is
    signed with it.
    """
    found = query_values(
        tx,
        str,
        "SELECT public FROM cloud_key WHERE purpose = ? ORDER BY active_from, id",
        KeyPurpose.PART_TOKEN,
    )
    return [*map(json.loads, found)]


def create_cloud_keys(tx: Transaction, root: Sealer, now: int) -> None:
    """Create a key of each purpose for a new cloud."""
    for purpose in KeyPurpose:
        insert(tx, create_material(purpose, now).seal(root, now, now))


def rotate_key(
    tx: Transaction, root: Sealer, purpose: KeyPurpose, now: int, *, at_once: bool
) -> CloudKey:
    """Create the next key of a purpose, and return it.

    With `at_once`, delete the former keys now, except sealing keys: these stay until all secrets
    are sealed with the new key.
    """
    schedule, keys = SCHEDULES[purpose], list_cloud_keys(tx)
    pending = [key for key in keys if key.purpose is purpose and key.active_from > now]
    if pending and not at_once:
        raise RotationPending(
            f"the next {purpose} key already exists: see cogwork-cloud key list. If the active "
            "key was stolen, replace it at once with --now"
        )
    former = [key for key in keys if key.purpose is purpose]
    start = now if at_once else now + schedule.lead
    new = create_material(purpose, now).seal(root, now, start)
    if at_once:
        # Keep former sealing keys until `resealing` has sealed all secrets with the new key.
        delete_cloud_keys(tx, pending if purpose is KeyPurpose.SEALING else former)
    elif schedule.overlap is not None:
        for key in former:
            if key.ends_at is None:
                end = start + schedule.overlap
                tx.execute("UPDATE cloud_key SET ends_at = ? WHERE id = ?", end, key.id)
    insert(tx, new)
    return new


def delete_ended_keys(tx: Transaction, now: int) -> list[CloudKey]:
    """Delete expired keys, and return them."""
    ended = [key for key in list_cloud_keys(tx) if has_ended(key, now)]
    delete_cloud_keys(tx, ended)
    return ended


def delete_cloud_keys(tx: Transaction, keys: Iterable[CloudKey]) -> None:
    for key in keys:
        tx.execute("DELETE FROM cloud_key WHERE id = ?", key.id)


def find_missing_purposes(keys: Sequence[CloudKey]) -> list[KeyPurpose]:
    """Return the purposes that have no key."""
    return [each for each in KeyPurpose if each not in {key.purpose for key in keys}]
