"""Ed25519 signatures of releases, verified with public keys that the machine's owner trusts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    load_pem_private_key,
    load_pem_public_key,
)

from cogwork.agent.errors import BadRelease

SIGNATURE_SIZE: Final = 64


class TrustedKeys:
    def __init__(self, keys: Iterable[Ed25519PublicKey]) -> None:
        self._keys = tuple(keys)

    @classmethod
    def load(cls, directory: Path) -> TrustedKeys:
        """Load every `*.pem` file of a directory. Raise BadRelease if one cannot be read."""
        return cls(map(_load_public, sorted(directory.glob("*.pem"))))

    def extend(self, keys: Iterable[Ed25519PublicKey]) -> TrustedKeys:
        return TrustedKeys((*self._keys, *keys))

    def verify(self, data: bytes, signature: bytes) -> None:
        """Verify a signature. Raise BadRelease if none of the keys has signed the data."""
        for key in self._keys:
            try:
                key.verify(signature, data)
            except InvalidSignature:
                continue
            return
        raise BadRelease(
            "the release is not signed by a key that this machine trusts; get it again from its "
            "publisher, or add the publisher's key with: cogwork-agent trust KEY.pem"
        )


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """Load a private key. Raise ValueError if the file has none."""
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is not an Ed25519 key")  # noqa: TRY004 - as other bad files
    return key


def parse_public_key(data: bytes) -> Ed25519PublicKey:
    """Parse a public key. Raise ValueError if the data has none."""
    key = load_pem_public_key(data)
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is not an Ed25519 key")  # noqa: TRY004 - as other bad files
    return key


def _load_public(path: Path) -> Ed25519PublicKey:
    try:
        return parse_public_key(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadRelease(f"the key {path} cannot be read: {error}; remove or replace it") from None
