"""JSON Web Tokens of this machine and of an external issuer."""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt

from cogwork.auth.errors import Unauthenticated
from cogwork.auth.signing_key import SigningKey

TYPE_CLAIM: Final = "rpc_creds_type"
METADATA_CLAIM: Final = "rpc_auth_md"
FINGERPRINT: Final = "fingerprint"
MAX_TOKEN_LENGTH: Final = 8192

_OWN_ALGORITHM: Final = "EdDSA"
_EXTERNAL_ALGORITHMS: Final = ("RS256", "RS384", "RS512")
_MIN_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a valid token."""

    entity: str
    type: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    valid_from: float = 0.0
    """The beginning and the end of the validity, in seconds since 1970."""
    valid_until: float = math.inf
    key_fingerprint: str = ""
    """The fingerprint of the external issuer's key; empty for tokens of this machine."""


class TokenIssuer:
    """Issues and verifies the tokens of this machine."""

    def __init__(self, key: SigningKey, audience: str) -> None:
        self._key = key
        self.audience = audience

    @property
    def key_id(self) -> str:
        return self._key.id

    def issue(
        self,
        entity: str,
        kind: str,
        fingerprint: str,
        issued_at: float,
        lifetime: float | None = None,
    ) -> str:
        """Return a token that is valid until its credential is removed or replaced.

        It expires after `lifetime` seconds, if given. By default it does not expire, because
        clients of this API never log in a second time by themselves.
        """
        claims: dict[str, Any] = {
            "sub": entity,
            "aud": [self.audience],
            "iss": self.audience,
            "iat": int(issued_at),
            "jti": str(uuid.uuid4()),
            TYPE_CLAIM: kind,
            METADATA_CLAIM: {FINGERPRINT: fingerprint},
        }
        if lifetime is not None:
            claims["exp"] = int(issued_at + lifetime)
        return jwt.encode(claims, self._key.private, _OWN_ALGORITHM, {"kid": self._key.id})

    def verify(self, token: str) -> Claims:
        return _verify(token, self._key.public, (_OWN_ALGORITHM,), self.audience)


class ExternalKeys:
    """The public keys of an external issuer, from its JSON Web Key Set."""

    def __init__(self, jwks: Mapping[str, Any], audience: str, name: str = "") -> None:
        """`name` is the name of the machine, which some issuers use as the only audience.

        Raise ValueError if a key cannot be used.
        """
        self._audience = audience
        self._name = name
        self._keys = dict(map(_read_key, jwks.get("keys", ())))

    def __contains__(self, key_id: str) -> bool:
        return key_id in self._keys

    @property
    def fingerprints(self) -> frozenset[str]:
        return frozenset(fingerprint for _, fingerprint in self._keys.values())

    def verify(self, token: str, key_id: str) -> Claims:
        key, fingerprint = self._keys[key_id]
        return _verify(token, key, _EXTERNAL_ALGORITHMS, self._audience, self._name, fingerprint)


def read_key_id(token: str) -> str:
    """Return the key ID in the header of a token, without verifying the signature."""
    if len(token) > MAX_TOKEN_LENGTH:
        raise Unauthenticated("unauthenticated: the token is too long")
    try:
        return str(jwt.get_unverified_header(token).get("kid", ""))
    except jwt.PyJWTError as error:
        raise _refusal(error) from None


def _verify(
    token: str,
    key: Any,
    algorithms: tuple[str, ...],
    audience: str,
    only_name: str = "",
    key_fingerprint: str = "",
) -> Claims:
    """Verify a token. `only_name` is also accepted if it is the only audience of the token."""
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            audience=[each for each in (audience, only_name) if each],
            # Skip the time checks: the caller checks the times with a clock that tests can control.
            options={
                "require": ["aud"],
                "verify_exp": False,
                "verify_nbf": False,
                "verify_iat": False,
            },
        )
    except jwt.InvalidAudienceError:
        raise _wrong_audience() from None
    except jwt.PyJWTError as error:
        raise _refusal(error) from None
    audiences = [claims["aud"]] if isinstance(claims["aud"], str) else claims["aud"]
    if audience not in audiences and len(audiences) > 1:
        raise _wrong_audience()
    entity = claims.get("sub")
    if not isinstance(entity, str) or not entity:
        raise Unauthenticated("expected entity (sub) in claims")
    metadata = claims.get(METADATA_CLAIM)
    return Claims(
        entity,
        str(claims.get(TYPE_CLAIM, "")),
        {key: str(value) for key, value in metadata.items()} if isinstance(metadata, dict) else {},
        _read_time(claims, "nbf", 0.0),
        _read_time(claims, "exp", math.inf),
        key_fingerprint,
    )


def _read_time(claims: Mapping[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unauthenticated(f"unauthenticated: the claim {name} is not a number")
    return float(value)


def _wrong_audience() -> Unauthenticated:
    return Unauthenticated("invalid audience: the token is for another machine")


def _refusal(error: jwt.PyJWTError) -> Unauthenticated:
    why = str(error)
    return Unauthenticated(f"unauthenticated: {why[:1].lower()}{why[1:]}")


def _read_key(value: Any) -> tuple[str, tuple[Any, str]]:
    """Return the ID, the key and its fingerprint. Raise ValueError if the key cannot be used."""
    if not isinstance(value, dict) or not isinstance(value.get("kid"), str):
        raise ValueError('a key has no "kid"')  # noqa: TRY004 - as all other faults
    if value.get("kty") != "RSA":
        raise ValueError(f'key "{value["kid"]}" is not an RSA key')
    try:
        key = jwt.PyJWK(value, algorithm=str(value.get("alg", "RS256"))).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f'key "{value["kid"]}" is not valid: {error}') from None
    if "d" in value:
        raise ValueError(f'key "{value["kid"]}" is a private key; list public keys only')
    if key.key_size < _MIN_RSA_BITS:
        raise ValueError(f'key "{value["kid"]}" is shorter than {_MIN_RSA_BITS} bits')
    text = json.dumps({"n": value["n"], "e": value["e"]}, sort_keys=True)
    return value["kid"], (key, hashlib.sha256(text.encode()).hexdigest())
