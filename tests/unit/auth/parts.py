"""Parts of a login, for tests."""

from __future__ import annotations

from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from cogwork.auth.attempt_limiter import AttemptLimiter
from cogwork.auth.authenticator import Authenticator
from cogwork.auth.credentials import KnownCredentials, StoredSecret
from cogwork.auth.roles import Role
from cogwork.auth.signing_key import SigningKey
from cogwork.auth.tokens import ExternalKeys
from cogwork.core.clock import ManualClock

AUDIENCE = "robot.example"
NAME = "press.hall.example"
"""What other issuers call the machine."""
ADDRESS = "ipv4:192.0.2.7"
KEY = SigningKey(ed25519.Ed25519PrivateKey.generate())
RSA_KEY = rsa.generate_private_key(65537, 2048)
SECRETS = {"owner": "owner-secret", "operator": "operator-secret", "viewer": "viewer-secret"}


def stored(secret: str, role: Role = Role.OWNER) -> StoredSecret:
    return StoredSecret(KEY.digest(secret), role)


def api_keys() -> dict[str, StoredSecret]:
    return {name: stored(secret, Role[name.upper()]) for name, secret in SECRETS.items()}


def jwk(key_id: str = "issuer", key: rsa.RSAPrivateKey = RSA_KEY) -> dict[str, Any]:
    found: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**found, "kid": key_id, "kty": "RSA"}


def external_keys(*keys: dict[str, Any]) -> ExternalKeys:
    return ExternalKeys({"keys": list(keys) or [jwk()]}, AUDIENCE, NAME)


def sign_externally(
    claims: dict[str, Any],
    key: rsa.RSAPrivateKey = RSA_KEY,
    algorithm: str = "RS256",
    key_id: str = "issuer",
) -> str:
    return jwt.encode(claims, key, algorithm, {"kid": key_id})


def make_authenticator(
    credentials: KnownCredentials | None = None, clock: ManualClock | None = None
) -> Authenticator:
    clock = clock or ManualClock()
    return Authenticator(
        credentials if credentials is not None else KnownCredentials(api_keys()),
        KEY,
        AUDIENCE,
        AttemptLimiter(clock.monotonic),
        clock,
    )
