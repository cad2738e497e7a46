"""Creation of the cloud's keys, and parsing of their private parts."""

from __future__ import annotations

import datetime
import hashlib
import json
import secrets
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from cogwork.auth.certificate_authority import (
    Authority,
    PemPair,
    create_authority,
    parse_authority,
)
from cogwork.auth.signing_key import SigningKey
from cogwork.cloud.keys.cloud_key import CloudKey, KeyPurpose
from cogwork.cloud.keys.machine_tokens import PartTokenKey, create_part_token_key
from cogwork.cloud.keys.sealer import CannotUnseal, Sealer, create_sealing_key

_AUTHORITY_NAME: Final = "Cogwork cloud authority"
_ID_LENGTH: Final = 32


class KeyMaterial(NamedTuple):
    """A new key, whose private part is not sealed yet."""

    id: str
    purpose: KeyPurpose
    public: str
    private: bytes

    def seal(self, root: Sealer, created_at: int, active_from: int) -> CloudKey:
        sealed = root.seal(self.private, _label(self.purpose, self.id))
        return CloudKey(self.id, self.purpose, self.public, sealed, created_at, active_from)


def unseal_private(key: CloudKey, root: Sealer) -> bytes:
    """Return the private part of a key. Raise CannotUnseal."""
    try:
        return root.unseal(key.sealed, _label(key.purpose, key.id))
    except CannotUnseal:
        raise CannotUnseal(
            f"the root key does not unseal the {key.purpose} key {key.id[:12]} of this cloud; "
            "restore the root key that belongs to these records. If it is lost, machines and keys "
            "can still log in after: cogwork-cloud repair --new-root-key"
        ) from None


def create_material(purpose: KeyPurpose, now: int) -> KeyMaterial:
    """Return a new key."""
    match purpose:
        case KeyPurpose.TOKEN:
            return describe_token_key(SigningKey(Ed25519PrivateKey.generate()))
        case KeyPurpose.PART_TOKEN:
            return describe_part_token_key(PartTokenKey(create_part_token_key()))
        case KeyPurpose.AUTHORITY:
            time = datetime.datetime.fromtimestamp(now / 1e6, datetime.UTC)
            return describe_authority(create_authority(time, _AUTHORITY_NAME))
        case KeyPurpose.SEALING:
            return KeyMaterial(secrets.token_hex(8), KeyPurpose.SEALING, "", create_sealing_key())


def describe_token_key(key: SigningKey) -> KeyMaterial:
    pem = key.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyMaterial(key.id, KeyPurpose.TOKEN, key.id, pem)


def describe_part_token_key(key: PartTokenKey) -> KeyMaterial:
    return KeyMaterial(key.id, KeyPurpose.PART_TOKEN, json.dumps(key.public), key.pem)


def describe_authority(authority: Authority) -> KeyMaterial:
    pem = authority.pem
    name = hashlib.sha256(pem.certificate).hexdigest()[:_ID_LENGTH]
    return KeyMaterial(name, KeyPurpose.AUTHORITY, pem.certificate.decode(), pem.key)


def read_token_key(private: bytes) -> SigningKey:
    """Parse a token key. Raise ValueError."""
    key = load_pem_private_key(private, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("the key is not an Ed25519 key")  # noqa: TRY004 - as other unusable keys
    return SigningKey(key)


def read_authority(public: str, private: bytes) -> Authority:
    """Parse the certificate and the key of an authority. Raise ValueError."""
    return parse_authority(PemPair(public.encode(), private))


def _label(purpose: KeyPurpose, key_id: str) -> str:
    """Return the label that binds a private part to its row, so that rows cannot be exchanged."""
    return f"cloud key {purpose} {key_id}"
