"""Secrets that the cloud makes: how they are checked, and how they are kept to be shown again."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cogwork.auth.signing_key import SigningKey
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
    """Machines must be told the secrets that their clients use, so digests alone do not suffice:
    a secret is also kept encrypted, with a key that is not among the records."""

    def __init__(self, key: SigningKey) -> None:
        self._key = key
        derived = HKDF(SHA256(), 32, salt=None, info=b"sealed secrets")
        self._cipher = AESGCM(derived.derive(key.private.private_bytes_raw()))

    def make_secret(self) -> NewSecret:
        text = secrets.token_urlsafe(_SECRET_SIZE)
        return NewSecret(text, self.digest(text), self._seal(text))

    def digest(self, secret: str) -> str:
        return self._key.digest(secret).hex()

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
