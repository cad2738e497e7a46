"""The keys that a machine trusts, as files and as verifiers."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from cogwork.agent.errors import BadRelease
from cogwork.agent.release.signature import TrustedKeys, load_private_key

DATA = b"a manifest"
FIRST, SECOND, FOREIGN = (Ed25519PrivateKey.generate() for _ in range(3))
OTHER_KIND = generate_private_key(SECP256R1())


def write_public(path: Path, key: Ed25519PrivateKey) -> None:
    public = key.public_key()
    path.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_public(tmp_path / "first.pem", FIRST)
    write_public(tmp_path / "second.pem", SECOND)
    write_public(tmp_path / "foreign.pem.disabled", FOREIGN)
    return tmp_path


def test_each_key_of_the_directory_is_trusted(directory: Path) -> None:
    keys = TrustedKeys.load(directory)
    keys.verify(DATA, FIRST.sign(DATA))
    keys.verify(DATA, SECOND.sign(DATA))
    with pytest.raises(BadRelease, match="not signed by a key"):
        keys.verify(DATA, FOREIGN.sign(DATA))
    keys.extend([FOREIGN.public_key()]).verify(DATA, FOREIGN.sign(DATA))


@pytest.mark.parametrize(
    "signature",
    [b"", bytes(64), FIRST.sign(b"another manifest")],
    ids=["empty", "zeros", "of another manifest"],
)
def test_other_signature_is_refused(directory: Path, signature: bytes) -> None:
    with pytest.raises(BadRelease):
        TrustedKeys.load(directory).verify(DATA, signature)


def test_without_keys_nothing_is_trusted(tmp_path: Path) -> None:
    with pytest.raises(BadRelease):
        TrustedKeys.load(tmp_path / "missing").verify(DATA, FIRST.sign(DATA))


def test_key_that_cannot_be_read_is_named(directory: Path) -> None:
    (directory / "broken.pem").write_text("not a key")
    with pytest.raises(BadRelease, match=r"broken\.pem cannot be read"):
        TrustedKeys.load(directory)
    public = OTHER_KIND.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (directory / "broken.pem").write_bytes(pem)
    with pytest.raises(BadRelease, match="not an Ed25519 key"):
        TrustedKeys.load(directory)


def test_private_key(tmp_path: Path) -> None:
    path = tmp_path / "private.pem"
    for key in (FIRST, OTHER_KIND):
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )
        if key is FIRST:
            assert load_private_key(path).sign(DATA) == FIRST.sign(DATA)
        else:
            with pytest.raises(ValueError, match="not an Ed25519 key"):
                load_private_key(path)
