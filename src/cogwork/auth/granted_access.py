"""Identifies clients by the access list of the cloud that this machine has joined."""

from __future__ import annotations

import hmac
import math
from collections.abc import Callable, Mapping
from typing import Final

from cogwork.auth.access_list import AccessEntry, AccessList, Principal, PrincipalKind
from cogwork.auth.errors import NotListed, Unauthenticated
from cogwork.auth.identity import CredentialType, Identity
from cogwork.auth.tokens import FINGERPRINT, Claims, ExternalKeys
from cogwork.auth.verifier import credential_digest, part_verifier

KIND: Final = "kind"
PRINCIPAL: Final = "principal"
EPOCH: Final = "epoch"
"""Metadata keys that identify the principal, in tokens for machines and in signaling offers."""

_KINDS: Final = {
    CredentialType.API_KEY: PrincipalKind.KEY,
    CredentialType.LOCATION_SECRET: PrincipalKind.LOCATION,
}
_NO_VERIFIER: Final = bytes(32)


class GrantedAccess:
    def __init__(
        self, access: AccessList, is_own_name: Callable[[str], bool] = lambda _: False
    ) -> None:
        """`is_own_name` returns whether an entity is a name of this machine. Location secrets
        require it.

        Raise ValueError if a public key of the cloud cannot be used.
        """
        self._access = access
        self._is_own_name = is_own_name
        self.issuer = ExternalKeys(access.jwks, access.part)
        """The public keys of the cloud, which signs tokens for this part."""

    @property
    def accepted_types(self) -> tuple[CredentialType, ...]:
        return tuple(kind for kind, of in _KINDS.items() if self._access.of_kind(of))

    def check(self, entity: str, kind: str, secret: str) -> Identity | None:
        """Return the identity of a client that presents a secret; None if the secret is wrong."""
        digest = credential_digest(secret)
        entry = next(
            (each for each in self._candidates(entity, kind) if self._matches(each, digest)), None
        )
        if entry is None:
            # Compare with a placeholder, so that refusing an unknown client takes as long as a
            # known one.
            hmac.compare_digest(_NO_VERIFIER, part_verifier(digest, self._access.part, entity, 0))
            return None
        return _identity_of(entry, entity, CredentialType(kind), entry.fingerprint)

    def identify(self, claims: Claims) -> Identity | None:
        """Return the identity in the claims of a verified token; None if its credential was
        removed.

        For tokens from the cloud, raise NotListed if the principal is not on the access list, or
        Unauthenticated if the cloud has removed the principal's access.
        """
        if claims.key_fingerprint:
            entry = self._find_listed(read_principal(claims.metadata, claims.entity))
            return _identity_of(
                entry,
                claims.entity,
                CredentialType.EXTERNAL,
                claims.key_fingerprint,
                claims.valid_until,
            )
        fingerprint = claims.metadata.get(FINGERPRINT, "")
        for entry in self._candidates(claims.entity, claims.type):
            if entry.fingerprint == fingerprint:
                kind = CredentialType(claims.type)
                return _identity_of(entry, claims.entity, kind, fingerprint, claims.valid_until)
        return None

    def introduce(self, principal: Principal | None, entity: str) -> Identity:
        """Return the identity of a client that the cloud has authenticated.

        Raise NotListed if the client is not on the access list, or Unauthenticated if the cloud has
        removed the client's access.
        """
        return _identity_of(self._find_listed(principal), entity, CredentialType.SIGNALING)

    def grants(self, identity: Identity) -> bool:
        """Return whether the list still has the client of an identity and still grants its role."""
        entry = self._access.find(identity.principal) if identity.principal is not None else None
        if entry is None or entry.role < identity.role:
            return False
        if identity.type is CredentialType.EXTERNAL:
            return identity.fingerprint in self.issuer.fingerprints
        return identity.type is CredentialType.SIGNALING or (
            entry.fingerprint == identity.fingerprint
        )

    def _candidates(self, entity: str, kind: str) -> list[AccessEntry]:
        """Return the entries whose secrets the client may present."""
        if kind == CredentialType.API_KEY:
            entry = self._access.entries.get((PrincipalKind.KEY, entity))
            return [entry] if entry is not None else []
        if kind == CredentialType.LOCATION_SECRET and self._is_own_name(entity):
            return self._access.of_kind(PrincipalKind.LOCATION)
        return []

    def _matches(self, entry: AccessEntry, digest: bytes) -> bool:
        principal = entry.principal
        computed = part_verifier(digest, self._access.part, principal.id, principal.epoch)
        return hmac.compare_digest(entry.verifier, computed)

    def _find_listed(self, principal: Principal | None) -> AccessEntry:
        entry = self._access.find(principal) if principal is not None else None
        if entry is not None:
            return entry
        if principal is not None and principal.id in self._access.ended:
            raise Unauthenticated("unauthenticated: the access of this client was removed")
        raise NotListed("unauthenticated: this client has no access to this machine")


def describe_principal(principal: Principal) -> dict[str, str]:
    """Return the metadata that identifies a principal in a token or a signaling offer."""
    return {KIND: principal.kind, PRINCIPAL: principal.id, EPOCH: str(principal.epoch)}


def read_principal(metadata: Mapping[str, str], entity: str) -> Principal | None:
    """Return the principal in the metadata; None if this version does not know its kind."""
    kind, epoch = metadata.get(KIND, ""), metadata.get(EPOCH, "")
    if kind not in tuple(PrincipalKind) or not epoch.isdecimal():
        return None
    return Principal(PrincipalKind(kind), metadata.get(PRINCIPAL) or entity, int(epoch))


def _identity_of(
    entry: AccessEntry,
    entity: str,
    kind: CredentialType,
    fingerprint: str = "",
    valid_until: float = math.inf,
) -> Identity:
    until = min(entry.until, valid_until)
    return Identity(entity, kind, entry.role, fingerprint, until, entry.principal)
