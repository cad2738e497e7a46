"""Encryption of texts that are stored in the records (AES-GCM)."""

from __future__ import annotations

import base64
import binascii
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from cogwork.core.errors import CogworkError

KEY_SIZE: Final = 32
_NONCE_SIZE: Final = 12


class CannotUnseal(CogworkError):
    """A stored secret was sealed with another key."""


class Sealer:
    def __init__(self, key: bytes) -> None:
        """Raise ValueError if the length of the key is not 32 bytes."""
        if len(key) != KEY_SIZE:
            raise ValueError(f"a key of {KEY_SIZE} bytes is required, but this one has {len(key)}")
        self._key = key
        self._cipher = AESGCM(key)

    def seal(self, data: bytes, label: str = "") -> str:
        """Encrypt the data. Decrypting it requires the same label."""
        nonce = os.urandom(_NONCE_SIZE)
        sealed = self._cipher.encrypt(nonce, data, label.encode() or None)
        return base64.b64encode(nonce + sealed).decode()

    def unseal(self, text: str, label: str = "") -> bytes:
        """Decrypt the data. Raise CannotUnseal."""
        try:
            data = base64.b64decode(text, validate=True)
            return self._cipher.decrypt(
                data[:_NONCE_SIZE], data[_NONCE_SIZE:], label.encode() or None
            )
        except (InvalidTag, binascii.Error, ValueError):
            raise CannotUnseal("the text was sealed with another key, or is damaged") from None

    def derive(self, purpose: str) -> bytes:
        """Return a key that is derived from this one and does not reveal it."""
        return HKDF(SHA256(), KEY_SIZE, salt=None, info=purpose.encode()).derive(self._key)


def create_sealing_key() -> bytes:
    return os.urandom(KEY_SIZE)
