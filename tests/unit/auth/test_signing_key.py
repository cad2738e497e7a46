from __future__ import annotations

import logging
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cogwork.auth.signing_key import load_signing_key


def test_key_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "auth" / "signing-key.pem"
    key = load_signing_key(path)
    assert load_signing_key(path).id == key.id
    assert load_signing_key(path).digest("secret") == key.digest("secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_digests_differ_between_machines_and_secrets(tmp_path: Path) -> None:
    one, two = load_signing_key(tmp_path / "one"), load_signing_key(tmp_path / "two")
    assert one.digest("secret") != two.digest("secret")
    assert one.digest("secret") != one.digest("Secret")


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_broken_file_is_replaced(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        key = load_signing_key(path)
    assert "clients must log in again" in caplog.text
    assert load_signing_key(path).id == key.id


def test_key_of_another_kind_is_replaced(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "key.pem"
    other = rsa.generate_private_key(65537, 2048)
    path.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    load_signing_key(path)
    assert "is not an Ed25519 key" in caplog.text


def test_unwritable_place_still_gives_a_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    assert load_signing_key(tmp_path / "file" / "key.pem").id
    assert "using another key until this process ends" in caplog.text


def test_unreadable_file_is_not_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key.pem"
    key = load_signing_key(path)

    def fail(_: Path) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", fail)
        assert load_signing_key(path).id != key.id
    assert "Too many open files; using another key until this process ends" in caplog.text
    assert load_signing_key(path).id == key.id
