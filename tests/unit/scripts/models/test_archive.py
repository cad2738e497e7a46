from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest
from scripts.models.archive import read_member


def zipped(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, data)
    return file.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (zipped("a", b"found"), ("a",)),
        (tarred("d/a", b"found"), ("d/a",)),
        (tarred("inner.zip", zipped("a", b"found")), ("inner.zip", "a")),
        (tarred("model", b"model" * 99 + zipped("labels", b"found")), ("model", "labels")),
    ],
    ids=["zip", "tar", "zip in a tar", "zip behind a model"],
)
def test_members(tmp_path: Path, data: bytes, path: tuple[str, ...]) -> None:
    (tmp_path / "archive").write_bytes(data)
    assert read_member(tmp_path / "archive", path) == b"found"


@pytest.mark.parametrize("data", [zipped("a", b""), tarred("a", b"")], ids=["zip", "tar"])
def test_a_member_that_is_not_there(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "archive").write_bytes(data)
    with pytest.raises(KeyError, match="other"):
        read_member(tmp_path / "archive", ["other"])
