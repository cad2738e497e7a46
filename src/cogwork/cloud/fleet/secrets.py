"""Secrets of locations and parts. Two can be valid at the same time, to allow rotation."""

from __future__ import annotations

import enum
from collections import defaultdict
from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.operations.operation import Call, new_id, to_timestamp
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import SecretRow
from cogwork.core.errors import CogworkError, NotFound

MAX_SECRETS: Final = 2


class SecretOwner(enum.StrEnum):
    LOCATION = "location"
    PART = "part"


class SecretLimit(CogworkError):
    """The part or location already has the maximum number of secrets."""

    status = "FAILED_PRECONDITION"


def add_secret(tx: Transaction, call: Call, owner: SecretOwner, owner_id: str) -> None:
    if len(_rows(tx, owner, owner_id)) >= MAX_SECRETS:
        raise SecretLimit(f"{MAX_SECRETS} secrets already exist; delete one first")
    secret = call.keyring.make_secret()
    insert(tx, SecretRow(new_id(), owner, owner_id, secret.digest, secret.sealed, call.now))


def delete_secret(
    tx: Transaction, call: Call, owner: SecretOwner, owner_id: str, secret_id: str
) -> None:
    """Delete a secret. If it is the only secret of a part, replace it.

    The replacement is not sent to the part, so a thief with the deleted secret does not get it.
    """
    found = _rows(tx, owner, owner_id)
    if secret_id not in (row.id for row in found):
        raise NotFound(f'there is no secret "{secret_id}"')
    tx.execute("DELETE FROM secret WHERE id = ?", secret_id)
    call.ended_credentials += (owner_id, secret_id)
    if len(found) == 1 and owner is SecretOwner.PART:
        add_secret(tx, call, owner, owner_id)


def delete_secrets(tx: Transaction, call: Call, owner: SecretOwner, owner_id: str) -> None:
    tx.execute("DELETE FROM secret WHERE owner_type = ? AND owner_id = ?", owner, owner_id)
    call.ended_credentials.append(owner_id)


def list_secrets(
    tx: Transaction, keyring: Keyring, owner: SecretOwner, owner_id: str
) -> list[pb.SharedSecret]:
    """Return the secrets, newest first."""
    return [_describe(row, keyring) for row in _rows(tx, owner, owner_id)]


def list_location_secrets(
    tx: Transaction, keyring: Keyring, organization: str
) -> dict[str, list[pb.SharedSecret]]:
    """Return the secrets of all locations of an organization, newest first, by location."""
    found: dict[str, list[pb.SharedSecret]] = defaultdict(list)
    rows = select(
        tx,
        SecretRow,
        "JOIN location ON location.id = secret.owner_id "
        "WHERE secret.owner_type = 'location' AND location.organization_id = ? "
        "ORDER BY secret.created_at DESC, secret.id",
        organization,
    )
    for row in rows:
        found[row.owner_id].append(_describe(row, keyring))
    return found


def _describe(row: SecretRow, keyring: Keyring) -> pb.SharedSecret:
    return pb.SharedSecret(
        id=row.id,
        secret=keyring.unseal(row.sealed),
        created_on=to_timestamp(row.created_at),
        state=pb.SharedSecret.State.STATE_ENABLED,
    )


def _rows(tx: Transaction, owner: SecretOwner, owner_id: str) -> list[SecretRow]:
    return select(
        tx,
        SecretRow,
        "WHERE owner_type = ? AND owner_id = ? ORDER BY created_at DESC, id",
        *(owner, owner_id),
    )
