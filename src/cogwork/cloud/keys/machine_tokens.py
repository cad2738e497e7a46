"""Tokens with which users of the cloud call machines directly."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
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
"""Lifetime in seconds. Machines verify these tokens without the cloud. On a machine with an access
list, a token ends with the access of its holder; on other machines, it stays valid until it
expires."""
_ALGORITHM: Final = "RS256"
_KEY_SIZE: Final = 2048


class PartTokenKey:
    """The key of tokens for machines. It is an RSA key, because machines accept no other type."""

    def __init__(self, pem: bytes) -> None:
        """Parse the private key. Raise ValueError."""
        self.pem = pem
        self.private = _parse_key(pem)
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        text = json.dumps({"n": public["n"], "e": public["e"]}, sort_keys=True)
        self.id = hashlib.sha256(text.encode()).hexdigest()[:32]
        self.public: dict[str, Any] = {
            "kty": "RSA",
            "kid": self.id,
            "alg": _ALGORITHM,
            "use": "sig",
            "n": public["n"],
            "e": public["e"],
        }
        """The public key as an entry of a JSON Web Key Set."""


class MachineTokenIssuer:
    def __init__(self, active_key: Callable[[], PartTokenKey], issuer: str) -> None:
        self._active_key = active_key
        self._issuer = issuer

    def issue(
        self, audience: list[str], entity: str, metadata: Mapping[str, str], now: float
    ) -> str:
        """Return a token for the machine with these names. `metadata` identifies the holder."""
        key = self._active_key()
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
        return jwt.encode(claims, key.private, _ALGORITHM, {"kid": key.id})


def create_part_token_key() -> bytes:
    """Return a new private key as PEM."""
    key = generate_private_key(65537, _KEY_SIZE)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _parse_key(pem: bytes) -> RSAPrivateKey:
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, RSAPrivateKey):
        raise ValueError("the key is not an RSA key")  # noqa: TRY004 - as other unusable files
    return key
