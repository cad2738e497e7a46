"""Builds the access list of a part: the clients that may use it, and their roles."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

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
from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.identity.access import ResourceType, list_above
from cogwork.cloud.keys.key_records import list_part_token_keys
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query, select
from cogwork.cloud.storage.tables import SecretRow

_FRESH_SECONDS: Final = 30 * 86_400
"""Seconds for which a machine may use its list without the cloud."""
_REVISION_LENGTH: Final = 16


def build_access_list(tx: Transaction, part: LocatedPart) -> bytes:
    """Return the list as JSON, without the time of its issue."""
    entries = index_entries([*_list_keys(tx, part), *_list_location_secrets(tx, part)])
    access = AccessList(part.id, entries, {"keys": list_part_token_keys(tx)})
    revision = hashlib.sha256(encode_access_list(access).encode()).hexdigest()[:_REVISION_LENGTH]
    return encode_access_list(replace(access, revision=revision)).encode()


def issue_access_list(content: bytes, now: float) -> str:
    """Return the list with the time of its issue."""
    access = parse_access_list(content)
    return encode_access_list(replace(access, issued_at=now, fresh_until=now + _FRESH_SECONDS))


class _GrantedKey(NamedTuple):
    id: str
    digest: str
    epoch: int
    role: str


def _list_keys(tx: Transaction, part: LocatedPart) -> Iterator[AccessEntry]:
    """Yield the keys with a role on the machine or above it, each with its highest role."""
    roles: dict[str, Role] = {}
    keys: dict[str, _GrantedKey] = {}
    for kind, name in list_above(tx, (ResourceType.MACHINE, part.machine_id)):
        for key in query(
            tx,
            _GrantedKey,
            "SELECT api_key.id, api_key.digest, api_key.epoch, role_grant.role FROM api_key "
            "JOIN role_grant ON role_grant.key_id = api_key.id "
            "WHERE resource_type = ? AND resource_id = ? ORDER BY api_key.id",
            *(kind, name),
        ):
            keys[key.id] = key
            role = ROLE_NAMES[key.role]
            roles[key.id] = max(role, roles.get(key.id, role))
    for _, key in sorted(keys.items()):
        principal = Principal(PrincipalKind.KEY, key.id, key.epoch)
        yield _make_entry(part, principal, roles[key.id], key.digest)


def _list_location_secrets(tx: Transaction, part: LocatedPart) -> Iterator[AccessEntry]:
    """Yield an entry for each secret of the machine's location. Each secret grants the role
    owner."""
    secrets = select(
        tx,
        SecretRow,
        "WHERE owner_type = 'location' AND owner_id = ? ORDER BY id",
        part.location_id,
    )
    for secret in secrets:
        principal = Principal(PrincipalKind.LOCATION, secret.id)
        yield _make_entry(part, principal, Role.OWNER, secret.digest)


def _make_entry(part: LocatedPart, principal: Principal, role: Role, digest: str) -> AccessEntry:
    """Return an entry. `digest` is the digest of the principal's login secret."""
    verifier = part_verifier(bytes.fromhex(digest), part.id, principal.id, principal.epoch)
    return AccessEntry(principal, role, verifier)
