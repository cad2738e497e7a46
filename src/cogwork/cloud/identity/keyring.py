"""Secrets that the cloud makes: how they are checked, and how they are kept to be shown again."""

from __future__ import annotations

import base64
import hmac
import os
import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cogwork.auth.signing_key import SigningKey
from cogwork.auth.verifier import credential_digest
from cogwork.core.errors import CogworkError

_NONCE_SIZE: Final = 12
_SECRET_SIZE: Final = 32


class CannotUnseal(CogworkError):
    """A stored secret was sealed with another key."""


@dataclass(frozen=True, slots=True)
class NewSecret:
    text: str
    digest: str
    sealed: str


class Keyring:
    """Some secrets must stay readable, such as those of parts, which their owners see again: they
    are also kept encrypted, with a key that is not among the records."""

    def __init__(self, key: SigningKey) -> None:
        def derive(purpose: bytes) -> bytes:
            return HKDF(SHA256(), 32, salt=None, info=purpose).derive(
                key.private.private_bytes_raw()
            )

        self._cipher = AESGCM(derive(b"sealed secrets"))
        self._derivation_key = derive(b"secrets of parts")

    def make_secret(self) -> NewSecret:
        text = secrets.token_urlsafe(_SECRET_SIZE)
        return NewSecret(text, self.digest(text), self._seal(text))

    def derive_secret(self, name: str) -> str:
        """Return a secret that only this cloud can compute, the same each time."""
        return base64.urlsafe_b64encode(
            hmac.digest(self._derivation_key, name.encode(), "sha256")
        ).decode()

    def digest(self, secret: str) -> str:
        return credential_digest(secret).hex()

    def unseal(self, sealed: str) -> str:
        data = base64.b64decode(sealed)
        try:
            return self._cipher.decrypt(data[:_NONCE_SIZE], data[_NONCE_SIZE:], None).decode()
        except InvalidTag:
            raise CannotUnseal(
                "a secret was stored with another key; restore the file signing-key.pem that "
                "belongs to the records"
            ) from None

    def _seal(self, text: str) -> str:
        nonce = os.urandom(_NONCE_SIZE)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, text.encode(), None)).decode()
