"""The credentials that may log in. Only digests of the secrets are kept."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cogwork.auth.identity import CredentialType, Identity
from cogwork.auth.roles import Role
from cogwork.auth.tokens import Claims, ExternalKeys

_NO_DIGEST = bytes(32)
"""Compared with when there is no such credential, so that an unknown one takes as long."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    digest: bytes
    role: Role = Role.OWNER

    def matches(self, digest: bytes) -> bool:
        return hmac.compare_digest(self.digest, digest)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.digest).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Credentials:
    api_keys: Mapping[str, StoredSecret] = field(default_factory=dict)
    """By the ID of the key."""
    location_secrets: Sequence[StoredSecret] = ()
    is_own_name: Callable[[str], bool] = lambda _: False
    """Whether an entity is a name of this machine, as location secrets require."""
    external: ExternalKeys | None = None
    certificate_names: frozenset[str] = frozenset()

    @property
    def accepted_types(self) -> tuple[CredentialType, ...]:
        """The types with which clients can log in."""
        accepted = {
            CredentialType.API_KEY: bool(self.api_keys),
            CredentialType.LOCATION_SECRET: bool(self.location_secrets),
        }
        return tuple(kind for kind, is_accepted in accepted.items() if is_accepted)

    def check(self, entity: str, kind: str, digest: bytes) -> Identity | None:
        """Return the identity of a client that presents a secret with this digest.

        Every stored secret that could apply is compared, and at least one.
        """
        if kind == CredentialType.API_KEY:
            candidates = [self.api_keys.get(entity, StoredSecret(_NO_DIGEST))]
        else:
            candidates = [*self.location_secrets] if self.is_own_name(entity) else []
            candidates = candidates or [StoredSecret(_NO_DIGEST)]
        matching = [each for each in candidates if each.matches(digest)]
        if not matching:
            return None
        found = matching[0]
        return Identity(entity, CredentialType(kind), found.role, found.fingerprint)

    def identify(self, claims: Claims, fingerprint: str) -> Identity | None:
        """Return the identity that the claims of a verified token name, if it still exists."""
        if claims.key_fingerprint:
            return self.find(
                Identity(
                    claims.entity,
                    CredentialType.EXTERNAL,
                    _role_of(claims),
                    claims.key_fingerprint,
                )
            )
        stored = self._stored(claims.type, claims.entity, fingerprint)
        if stored is None:
            return None
        return Identity(claims.entity, CredentialType(claims.type), stored.role, fingerprint)

    def find(self, identity: Identity) -> Identity | None:
        """Return the identity if these credentials still grant it, with the same role."""
        match identity.type:
            case CredentialType.EXTERNAL:
                keys = self.external.fingerprints if self.external is not None else ()
                return identity if identity.fingerprint in keys else None
            case CredentialType.CERTIFICATE:
                return identity if identity.entity in self.certificate_names else None
            case _:
                stored = self._stored(identity.type, identity.entity, identity.fingerprint)
                return identity if stored is not None and stored.role is identity.role else None

    def _stored(self, kind: str, entity: str, fingerprint: str) -> StoredSecret | None:
        if kind == CredentialType.API_KEY:
            stored = self.api_keys.get(entity)
            return stored if stored is not None and stored.fingerprint == fingerprint else None
        if kind == CredentialType.LOCATION_SECRET:
            matching = (each for each in self.location_secrets if each.fingerprint == fingerprint)
            return next(matching, None)
        return None


def _role_of(claims: Claims) -> Role:
    """Return the role that an external issuer grants: owner, unless it says otherwise."""
    name = claims.metadata.get("role")
    return (
        Role[name.upper()]
        if name is not None and name.upper() in Role.__members__
        else (Role.OWNER if name is None else Role.VIEWER)
    )
