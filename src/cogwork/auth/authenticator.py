"""Logs clients in, and identifies them by their tokens."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping

from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.auth.credentials import KnownCredentials
from cogwork.auth.errors import InvalidLogin, Unauthenticated
from cogwork.auth.granted_access import GrantedAccess, read_principal
from cogwork.auth.identity import CredentialType, Identity
from cogwork.auth.refusal_delay import RefusalDelay
from cogwork.auth.roles import granted_role
from cogwork.auth.signing_key import SigningKey
from cogwork.auth.tokens import Claims, TokenIssuer, read_key_id
from cogwork.core.clock import Clock

_MAX_CACHED = 1024
"""Maximum number of verified tokens to cache: verifying a token takes longer than a small call."""
_CLOCK_TOLERANCE = 30.0
"""Seconds by which the clock of an external issuer may be ahead of this machine's clock."""
_MAX_QUOTED_LENGTH = 64
_BEARER = "Bearer "

_log = logging.getLogger("rdk.auth")


class Authenticator:
    def __init__(
        self,
        credentials: KnownCredentials,
        key: SigningKey,
        audience: str,
        limiter: AttemptLimiter,
        clock: Clock,
        granted: GrantedAccess | None = None,
    ) -> None:
        """`granted` is the access from the cloud; None if the machine has not joined a cloud."""
        self._credentials = credentials
        self._granted = granted
        # Compute the types only once, because that iterates over the access list.
        self._accepted_types = {
            *credentials.accepted_types,
            *(granted.accepted_types if granted is not None else ()),
        }
        self._key = key
        self._issuer = TokenIssuer(key, audience)
        self._limiter = limiter
        self._clock = clock
        self.refusals = RefusalDelay(clock)
        """Delays the responses to clients that fail to log in too often."""
        self._verified: OrderedDict[str, tuple[Identity, Claims]] = OrderedDict()
        """Verified tokens by `authorization` header, the least recently verified first."""

    def log_in(
        self, entity: str, kind: str, payload: str, address: str, lifetime: float | None = None
    ) -> str:
        """Return a token if the credentials are valid.

        `address` is the client's address. The token expires after `lifetime` seconds; never if it
        is None.
        """
        if not kind and not payload:
            raise InvalidLogin("credentials required")
        if kind not in self._accepted_types:
            raise InvalidLogin(f'do not know how to handle credential type "{_quote(kind)}"')
        # A location secret is valid for every name of the machine, so all names share a budget.
        limited = kind if kind == CredentialType.LOCATION_SECRET else entity
        self._limiter.check_guessable(address, limited, payload)
        identity = self._credentials.check(entity, kind, self._key.digest(payload))
        if identity is None and self._granted is not None:
            identity = self._granted.check(entity, kind, payload)
        if identity is None:
            self._limiter.record_failure(address, limited)
            _log.warning(
                'login with %s as "%s" from %s failed: invalid credentials',
                *(kind, _quote(entity), address),
            )
            raise Unauthenticated("invalid credentials")
        self._limiter.record_success(address, limited)
        now = self._clock.time()
        return self._issuer.issue(entity, kind, identity.fingerprint, now, lifetime)

    def identify(self, authorization: str) -> Identity:
        """Return the identity of a caller by its `authorization` header. Raise Unauthenticated."""
        known = self._verified.get(authorization)
        if known is None:
            known = self._verify(authorization)
        identity, claims = known
        now = self._clock.time()
        if now >= claims.valid_until:
            raise Unauthenticated("unauthenticated: the token has expired; log in again")
        if now < claims.valid_from - _CLOCK_TOLERANCE:
            raise Unauthenticated(
                "unauthenticated: the token is not valid yet; check the clock of this machine"
            )
        return identity

    def identify_certificate(self, digest: str) -> Identity:
        """Return the identity of a caller by the digest of the name in its certificate."""
        identity = self._credentials.identify_certificate(digest)
        if identity is None:
            raise Unauthenticated("authentication required")
        return identity

    def introduce(self, entity: str, introduction: Mapping[str, str]) -> Identity:
        """Return the identity of a client that a signaling server has authenticated. Raise
        NotListed.

        If the machine has an access list, the list determines the role, not the signaling server.
        """
        if self._granted is None:
            return Identity(
                entity, CredentialType.SIGNALING, granted_role(introduction.get("role"))
            )
        principal = read_principal(introduction, entity)
        return self._granted.introduce(principal, entity)

    def seconds_left(self, identity: Identity) -> float:
        """Return the seconds until the identity expires, and its calls must end."""
        return identity.valid_until - self._clock.time()

    def is_valid(self, identity: Identity) -> bool:
        """Return whether the credentials of an identity still exist and still grant its role."""
        if identity.principal is not None:
            return self._granted is not None and self._granted.grants(identity)
        if identity.type is CredentialType.SIGNALING and self._granted is not None:
            return False
        return self._credentials.grants(identity)

    def _verify(self, authorization: str) -> tuple[Identity, Claims]:
        if not authorization.startswith(_BEARER):
            raise Unauthenticated(f"expected authorization header with prefix: {_BEARER}")
        token = authorization.removeprefix(_BEARER)
        identity, claims = self._identify_token(token)
        if identity is None:
            raise Unauthenticated("unauthenticated: the credentials of this token were removed")
        self._verified[authorization] = verified = (identity, claims)
        if len(self._verified) > _MAX_CACHED:
            self._verified.popitem(last=False)
        return verified

    def _identify_token(self, token: str) -> tuple[Identity | None, Claims]:
        key_id, external = read_key_id(token), self._credentials.external
        if self._granted is not None and key_id in self._granted.issuer:
            claims = self._granted.issuer.verify(token, key_id)
            return self._granted.identify(claims), claims
        if external is not None and key_id in external:
            claims = external.verify(token, key_id)
        elif key_id == self._issuer.key_id:
            claims = self._issuer.verify(token)
        else:
            raise Unauthenticated("unauthenticated: the token is signed with an unknown key")
        identity = self._credentials.identify(claims)
        if identity is None and self._granted is not None and not claims.key_fingerprint:
            identity = self._granted.identify(claims)
        return identity, claims


def _quote(text: str) -> str:
    return text if len(text) <= _MAX_QUOTED_LENGTH else f"{text[:_MAX_QUOTED_LENGTH]}..."
