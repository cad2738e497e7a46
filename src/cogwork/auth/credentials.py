"""The credentials with which clients may log in. Only digests of the secrets are kept."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from cogwork.auth.identity import CredentialType, Identity
from cogwork.auth.roles import Role, granted_role
from cogwork.auth.tokens import FINGERPRINT, Claims, ExternalKeys


@dataclass(frozen=True, slots=True)
class StoredSecret:
    digest: bytes
    role: Role = Role.OWNER
    name: str = ""
    """The name of an API key for people."""

    def matches(self, digest: bytes) -> bool:
        return hmac.compare_digest(self.digest, digest)

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.digest).hexdigest()[:16]


_NO_SECRET = StoredSecret(bytes(32))
"""A placeholder for an unknown credential, so that refusing one takes as long as refusing a known
one."""


@dataclass(frozen=True, slots=True)
class KnownCredentials:
    api_keys: Mapping[str, StoredSecret] = field(default_factory=dict)
    """The stored secrets by the ID of the API key."""
    location_secrets: Sequence[StoredSecret] = ()
    is_own_name: Callable[[str], bool] = lambda _: False
    """Returns whether an entity is a name of this machine. Location secrets require it."""
    external: ExternalKeys | None = None
    certificate_names: Mapping[str, str] = field(default_factory=dict)
    """The accepted names of client certificates, by their digests."""

    @property
    def accepted_types(self) -> tuple[CredentialType, ...]:
        """The types of credentials with which clients can log in."""
        accepted = {
            CredentialType.API_KEY: bool(self.api_keys),
            CredentialType.LOCATION_SECRET: bool(self.location_secrets),
        }
        return tuple(kind for kind, is_accepted in accepted.items() if is_accepted)

    def check(self, entity: str, kind: str, digest: bytes) -> Identity | None:
        """Return the identity of a client that presents a secret with this digest; None if the
        secret is wrong.

        Compare the digest with every secret that could match. For an unknown entity, compare it
        with a placeholder, so that both refusals take equally long.
        """
        if kind == CredentialType.API_KEY:
            candidates = [self.api_keys.get(entity, _NO_SECRET)]
        else:
            candidates = [*self.location_secrets] if self.is_own_name(entity) else [_NO_SECRET]
        matching = [each for each in candidates if each.matches(digest)]
        if not matching:
            return None
        found = matching[0]
        return Identity(
            entity, CredentialType(kind), found.role, found.fingerprint, name=found.name
        )

    def identify(self, claims: Claims) -> Identity | None:
        """Return the identity in the claims of a verified token; None if its credential was
        removed."""
        if claims.key_fingerprint:
            identity = Identity(
                claims.entity,
                CredentialType.EXTERNAL,
                _role_of(claims),
                claims.key_fingerprint,
                claims.valid_until,
            )
            return identity if self.grants(identity) else None
        fingerprint = claims.metadata.get(FINGERPRINT, "")
        stored = self._stored(claims.type, claims.entity, fingerprint)
        if stored is None:
            return None
        kind = CredentialType(claims.type)
        return Identity(
            claims.entity, kind, stored.role, fingerprint, claims.valid_until, name=stored.name
        )

    def identify_certificate(self, digest: str) -> Identity | None:
        """Return the identity of a client whose certificate proves a name with this digest."""
        name = self.certificate_names.get(digest)
        if name is None:
            return None
        return Identity(name, CredentialType.CERTIFICATE, Role.OWNER, digest)

    def grants(self, identity: Identity) -> bool:
        """Return whether the credential of an identity still exists and still grants its role."""
        if identity.type is CredentialType.SIGNALING:
            # Nothing to check: the client's connection ends when the machine no longer trusts the
            # signaling server.
            return True
        if identity.type is CredentialType.CERTIFICATE:
            return identity.fingerprint in self.certificate_names
        if identity.type is CredentialType.EXTERNAL:
            return self.external is not None and identity.fingerprint in self.external.fingerprints
        stored = self._stored(identity.type, identity.entity, identity.fingerprint)
        return stored is not None and stored.role >= identity.role

    def _stored(self, kind: str, entity: str, fingerprint: str) -> StoredSecret | None:
        if kind == CredentialType.API_KEY:
            stored = self.api_keys.get(entity)
            return stored if stored is not None and stored.fingerprint == fingerprint else None
        if kind == CredentialType.LOCATION_SECRET:
            matching = (each for each in self.location_secrets if each.fingerprint == fingerprint)
            return next(matching, None)
        return None


def _role_of(claims: Claims) -> Role:
    return granted_role(claims.metadata.get("role"))
