"""The Ed25519 key that signs tokens. It is kept on disk, so tokens survive a restart."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from cogwork.core.files import atomic
from cogwork.core.os_error_text import os_reason, write_reason

_log = logging.getLogger("rdk.auth")


class SigningKey:
    def __init__(self, private: Ed25519PrivateKey) -> None:
        self.private = private
        raw_public = self.public.public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.id = base64.urlsafe_b64encode(raw_public).rstrip(b"=").decode()
        """The ID of the key in token headers: the encoded public key."""
        self._digest_key = hashlib.sha256(
            b"digests of secrets" + private.private_bytes_raw()
        ).digest()

    @property
    def public(self) -> Ed25519PublicKey:
        return self.private.public_key()

    def digest(self, secret: str) -> bytes:
        """Return a digest of a secret that only the holder of this key can compute."""
        return hmac.digest(self._digest_key, secret.encode(errors="surrogatepass"), "sha256")


def load_signing_key(path: Path) -> SigningKey:
    """Load the key from the file. If the file does not exist, create a key and try to save it."""
    try:
        private = _parse(path.read_bytes(), path)
    except FileNotFoundError:
        private = None
    except OSError as error:
        # Do not replace the file, because it may be readable again later.
        _log.warning(
            "cannot read the token signing key %s: %s; using another key until this process ends, "
            "so clients must log in again",
            *(path, os_reason(error)),
        )
        return SigningKey(Ed25519PrivateKey.generate())
    if private is None:
        private = Ed25519PrivateKey.generate()
        _save(path, private)
    return SigningKey(private)


def _parse(pem: bytes, path: Path) -> Ed25519PrivateKey | None:
    try:
        found = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        _log.warning(
            "the token signing key %s is invalid: %s; replacing it, so clients must log in again",
            *(path, error),
        )
        return None
    if not isinstance(found, Ed25519PrivateKey):
        _log.warning(
            "the token signing key %s is not an Ed25519 key; replacing it, so clients must log in "
            "again",
            path,
        )
        return None
    return found


def _save(path: Path, private: Ed25519PrivateKey) -> None:
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        atomic.write(path, pem, 0o600)
    except OSError as error:
        _log.warning(
            "cannot save the token signing key in %s: %s; tokens become invalid when this "
            "process ends",
            *(path, write_reason(error)),
        )
