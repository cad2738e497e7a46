from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.cloud.keys.root_key import NoRootKey, create_root_key, read_root_key
from cogwork.cloud.keys.sealer import CannotUnseal, Sealer, create_sealing_key


def test_sealed_data_needs_its_key_and_its_label() -> None:
    one, other = Sealer(create_sealing_key()), Sealer(create_sealing_key())
    sealed = one.seal(b"secret", "label")
    assert one.unseal(sealed, "label") == b"secret"
    assert "secret" not in sealed
    for sealer, text, label in (
        (other, sealed, "label"),
        (one, sealed, "another"),
        (one, sealed, ""),
        (one, sealed[:-8] + "AAAAAAA=", "label"),
        (one, "", "label"),
        (one, "not base64", "label"),
    ):
        with pytest.raises(CannotUnseal):
            sealer.unseal(text, label)


def test_root_key_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "root-key"
    sealed = create_root_key(file, "").seal(b"secret")
    assert read_root_key(file, "").unseal(sealed) == b"secret"
    assert file.stat().st_mode & 0o777 == 0o600
    # Of the environment, it leaves no file behind.
    given = file.read_text()
    file.unlink()
    assert create_root_key(file, given).unseal(sealed) == b"secret"
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "AAAA", "ÄÖÜ", "not base64!", "A" * 1000])
def test_damaged_root_key_is_a_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "root-key"
    file.write_text(text)
    with pytest.raises(NoRootKey, match="restore it from its backup"):
        read_root_key(file, "")


def test_missing_root_key_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NoRootKey, match="repair --new-root-key"):
        read_root_key(tmp_path / "root-key", "")
