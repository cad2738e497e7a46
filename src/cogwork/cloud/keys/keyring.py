"""Secrets that the cloud creates, verifies, and stores so that it can show them again."""

from __future__ import annotations

import base64
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from cogwork.auth.verifier import credential_digest
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.sealer import CannotUnseal

_SECRET_SIZE: Final = 32
_SEPARATOR: Final = ":"


@dataclass(frozen=True, slots=True)
class NewSecret:
    text: str
    digest: str
    sealed: str


class Keyring:
    """Creates and verifies secrets.

    Logins are verified by digests without a key, so they work even if every key is lost. Secrets
    that must be shown again are also stored sealed, preceded by the ID of the sealing key.
    """

    def __init__(self, keys: CloudKeys) -> None:
        self._keys = keys

    def make_secret(self) -> NewSecret:
        text = secrets.token_urlsafe(_SECRET_SIZE)
        return NewSecret(text, self.digest(text), self.seal(text))

    def derive_secret(self, name: str) -> str:
        """Return a secret that only this cloud can compute. The same name gives the same secret."""
        return base64.urlsafe_b64encode(
            hmac.digest(self._keys.derivation_key, name.encode(), "sha256")
        ).decode()

    def digest(self, secret: str) -> str:
        return credential_digest(secret).hex()

    def seal(self, text: str) -> str:
        key, sealer = self._keys.sealing_key
        return f"{key}{_SEPARATOR}{sealer.seal(text.encode())}"

    def unseal(self, sealed: str) -> str:
        """Return the text; empty if it was not stored. Raise CannotUnseal."""
        if not sealed:
            return ""
        key, _, rest = sealed.partition(_SEPARATOR)
        sealer = self._keys.find_sealing_key(key)
        if sealer is None:
            raise CannotUnseal(f"a secret was sealed with the key {key[:12]}, which is missing")
        return sealer.unseal(rest).decode()
