"""Tokens with which holders of a cloud login call machines directly."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from cogwork.auth.identity import CredentialType
from cogwork.auth.tokens import METADATA_CLAIM, TYPE_CLAIM

LIFETIME: Final = 3600
"""Seconds. Machines verify these tokens without the cloud, so they last beyond a removed key."""
_ALGORITHM: Final = "RS256"
_KEY_SIZE: Final = 2048


class MachineTokenIssuer:
    """Machines accept only RSA keys from external issuers, so this key is one."""

    def __init__(self, key: RSAPrivateKey, issuer: str) -> None:
        self._key = key
        self._issuer = issuer
        public = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        text = json.dumps({"n": public["n"], "e": public["e"]}, sort_keys=True)
        self._key_id = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.public_key: dict[str, Any] = {
            "kty": "RSA",
            "kid": self._key_id,
            "alg": _ALGORITHM,
            "use": "sig",
            "n": public["n"],
            "e": public["e"],
        }
        """As in a JSON Web Key Set."""

    def issue(
        self, audience: list[str], entity: str, metadata: Mapping[str, str], now: float
    ) -> str:
        """Return a token for the machine that has these names. `metadata` says who has it."""
        claims = {
            "sub": entity,
            "aud": audience,
            "iss": self._issuer,
            "iat": int(now),
            "exp": int(now) + LIFETIME,
            "jti": str(uuid.uuid4()),
            TYPE_CLAIM: CredentialType.EXTERNAL,
            METADATA_CLAIM: dict(metadata),
        }
        return jwt.encode(claims, self._key, _ALGORITHM, {"kid": self._key_id})


def create_token_key() -> bytes:
    """Return a new private key, as PEM."""
    key = generate_private_key(65537, _KEY_SIZE)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def parse_token_key(pem: bytes) -> RSAPrivateKey:
    """Raise ValueError."""
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("it is not an RSA key")  # noqa: TRY004 - as other unusable files
    return key
