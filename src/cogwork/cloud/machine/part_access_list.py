"""Makes the access list of a part: who may use it, and with which role."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    encode_access_list,
    index_entries,
    parse_access_list,
)
from cogwork.auth.roles import ROLE_NAMES, Role
from cogwork.auth.verifier import part_verifier
from cogwork.cloud.identity.access import ResourceType, list_above
from cogwork.cloud.keys.key_records import list_part_token_keys
from cogwork.cloud.storage.records import Row, Transaction

_FRESH_SECONDS: Final = 30 * 86_400
"""How long a machine uses its list without the cloud."""
_REVISION_LENGTH: Final = 16


def build_access_list(tx: Transaction, part: Row) -> bytes:
    """Return the list as JSON, without the time of its issue.

    `part` is a row with the location of its machine.
    """
    entries = index_entries([*_list_keys(tx, part), *_list_location_secrets(tx, part)])
    access = AccessList(part["id"], entries, {"keys": list_part_token_keys(tx)})
    revision = hashlib.sha256(encode_access_list(access).encode()).hexdigest()[:_REVISION_LENGTH]
    return encode_access_list(replace(access, revision=revision)).encode()


def issue_access_list(content: bytes, now: float) -> str:
    """Return a list with the time of its issue."""
    access = parse_access_list(content)
    return encode_access_list(replace(access, issued_at=now, fresh_until=now + _FRESH_SECONDS))


def _list_keys(tx: Transaction, part: Row) -> Iterator[AccessEntry]:
    """Yield the keys with a role on the machine or above it, each with its highest role."""
    roles: dict[str, Role] = {}
    rows: dict[str, Row] = {}
    for kind, name in list_above(tx, (ResourceType.MACHINE, part["machine_id"])):
        for row in tx.query(
            "SELECT api_key.id, api_key.digest, api_key.epoch, role_grant.role FROM api_key "
            "JOIN role_grant ON role_grant.key_id = api_key.id "
            "WHERE resource_type = ? AND resource_id = ? ORDER BY api_key.id",
            *(kind, name),
        ):
            rows[row["id"]] = row
            role = ROLE_NAMES[row["role"]]
            roles[row["id"]] = max(role, roles.get(row["id"], role))
    for key in sorted(rows):
        yield _make_entry(
            part, Principal(PrincipalKind.KEY, key, rows[key]["epoch"]), roles[key], rows[key]
        )


def _list_location_secrets(tx: Transaction, part: Row) -> Iterator[AccessEntry]:
    """Yield the secrets of the machine's own location, which give all rights."""
    rows = tx.query(
        "SELECT id, digest FROM secret WHERE owner_type = 'location' AND owner_id = ? ORDER BY id",
        part["location_id"],
    )
    for row in rows:
        principal = Principal(PrincipalKind.LOCATION, row["id"])
        yield _make_entry(part, principal, Role.OWNER, row)


def _make_entry(part: Row, principal: Principal, role: Role, row: Row) -> AccessEntry:
    digest = bytes.fromhex(row["digest"])
    return AccessEntry(
        principal, role, part_verifier(digest, part["id"], principal.id, principal.epoch)
    )
