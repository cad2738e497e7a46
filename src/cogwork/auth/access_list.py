"""The access list of a part: the clients that may use it through its cloud, and their roles.

The cloud makes one list for each part. The list decides every login, token, call and open
connection, also while the cloud cannot be reached. It contains no credentials: a verifier is valid
for this part only (`verifier.py`). This module imports only the standard library, so that small
servers can use it without other packages.
"""

from __future__ import annotations

import enum
import hashlib
import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from cogwork.auth.roles import ROLE_NAMES, Role

MAX_ENTRIES: Final = 100_000


class PrincipalKind(enum.StrEnum):
    KEY = "key"
    """An API key, identified by its ID."""
    LOCATION = "location"
    """A secret of the machine's location, identified by the ID of the secret."""


class Principal(NamedTuple):
    """A client, as the cloud identifies it."""

    kind: PrincipalKind
    id: str
    epoch: int = 0
    """Increased when the secret is replaced; tokens and connections of the old secret then end."""


@dataclass(frozen=True, slots=True)
class AccessEntry:
    principal: Principal
    role: Role
    verifier: bytes
    """The verifier of the principal's secret for this part (`verifier.py`)."""
    until: float = math.inf
    """The expiry time of the entry, in seconds since 1970."""

    @property
    def fingerprint(self) -> str:
        """The digest that identifies the secret in a token, so that the token ends with the
        secret."""
        return hashlib.sha256(self.verifier).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class AccessList:
    part: str
    """The ID of the part."""
    entries: Mapping[tuple[PrincipalKind, str], AccessEntry] = field(default_factory=dict)
    """The entries by kind and ID of their principals."""
    jwks: Mapping[str, Any] = field(default_factory=dict)
    """The public keys of the cloud that sign tokens for this part."""
    revision: str = ""
    issued_at: float = 0.0
    """The time of the last confirmation by the cloud, in seconds since 1970 by the cloud's
    clock."""
    fresh_until: float = math.inf
    """The time when the list expires if the cloud does not confirm it again."""
    ended: frozenset[str] = frozenset()
    """The IDs of principals that the cloud has removed since it made the list. These IDs are not
    stored."""

    def find(self, principal: Principal) -> AccessEntry | None:
        """Return the entry of a principal; None if it is missing, or has another epoch because the
        secret was replaced."""
        entry = self.entries.get((principal.kind, principal.id))
        return entry if entry is not None and entry.principal.epoch == principal.epoch else None

    def of_kind(self, kind: PrincipalKind) -> list[AccessEntry]:
        return [entry for entry in self.entries.values() if entry.principal.kind is kind]

    def without(self, ids: Collection[str]) -> AccessList:
        """Return the list without the principals with these IDs."""
        kept = {key: entry for key, entry in self.entries.items() if key[1] not in ids}
        if len(kept) == len(self.entries):
            return self
        return replace(self, entries=kept, revision="", ended=self.ended.union(ids))

    def at(self, now: float) -> AccessList:
        """Return the list without the entries and keys that have expired at a time."""
        if now >= self.fresh_until:
            return replace(self, entries={}, jwks={})
        kept = {key: entry for key, entry in self.entries.items() if now < entry.until}
        return self if len(kept) == len(self.entries) else replace(self, entries=kept)


def index_entries(
    entries: Iterable[AccessEntry],
) -> dict[tuple[PrincipalKind, str], AccessEntry]:
    return {(each.principal.kind, each.principal.id): each for each in entries}


def encode_access_list(access: AccessList) -> str:
    return json.dumps(
        {
            "part": access.part,
            "revision": access.revision,
            "issued_at": access.issued_at,
            "fresh_until": None if access.fresh_until == math.inf else access.fresh_until,
            "jwks": dict(access.jwks),
            "entries": [_encode_entry(each) for each in access.entries.values()],
        },
        separators=(",", ":"),
    )


def parse_access_list(text: str | bytes) -> AccessList:
    """Parse a list. Raise ValueError. Skip entries of kinds and roles that this version does not
    know."""
    try:
        found = json.loads(text)
        rows = found["entries"][:MAX_ENTRIES]
        entries = [entry for row in rows if (entry := _parse_entry(row)) is not None]
        return AccessList(
            str(found["part"]),
            index_entries(entries),
            {**found["jwks"]},
            str(found["revision"]),
            float(found["issued_at"]),
            math.inf if found["fresh_until"] is None else float(found["fresh_until"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ValueError(f"it is not an access list: {error!r}") from None


def _encode_entry(entry: AccessEntry) -> list[Any]:
    return [
        entry.principal.id,
        entry.principal.kind,
        entry.role.name.lower(),
        entry.principal.epoch,
        None if entry.until == math.inf else entry.until,
        entry.verifier.hex(),
    ]


def _parse_entry(row: list[Any]) -> AccessEntry | None:
    """Return the entry; None if this version does not know its kind or role."""
    name, kind, role, epoch, until, verifier = row[:6]
    if kind not in tuple(PrincipalKind) or role not in ROLE_NAMES:
        return None
    return AccessEntry(
        Principal(PrincipalKind(kind), str(name), int(epoch)),
        ROLE_NAMES[role],
        bytes.fromhex(verifier),
        math.inf if until is None else float(until),
    )
