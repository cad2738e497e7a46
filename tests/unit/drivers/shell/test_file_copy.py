"""Copies that arrive: into regular files only, and through no link."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.service.shell.v1.shell_pb2 import FileData  # noqa: E402

from cogwork.core.errors import CogworkError, InvalidRequest  # noqa: E402
from cogwork.drivers.shell.file_copy import (  # noqa: E402
    MULTIPLE_FILES,
    SINGLE_FILE,
    CopyFailed,
    FileReceiver,
)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    directory = tmp_path / "inside"
    directory.mkdir()
    return directory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def incoming(inside: Path) -> Iterator[FileReceiver]:
    copy = FileReceiver(inside, MULTIPLE_FILES, preserve=True)
    yield copy
    copy.close()


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def whole(name: str, data: bytes = b"x") -> FileData:
    return FileData(name=name, data=data, eof=True)


@pytest.mark.parametrize("kind", ["pipe", "socket", "directory", "link to a pipe"])
def test_only_a_regular_file_is_replaced(inside: Path, incoming: FileReceiver, kind: str) -> None:
    target = inside / "target"
    match kind:
        case "pipe":
            os.mkfifo(target)
        case "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(str(target))
        case "directory":
            target.mkdir()
        case _:
            os.mkfifo(inside / "pipe")
            target.symlink_to("pipe")
    before = target.lstat()
    with pytest.raises(CopyFailed, match="only a regular file can be replaced"):
        incoming.write_chunk(whole("target"))
    assert target.lstat().st_ino == before.st_ino
    assert not list(inside.glob(".*"))


def test_a_device_that_is_named_as_the_destination_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    copy = FileReceiver(pipe, SINGLE_FILE, preserve=False)
    try:
        with pytest.raises(CopyFailed, match="it is a pipe"):
            copy.write_chunk(whole("file"))
    finally:
        copy.close()
    assert pipe.is_fifo()


def test_a_kind_that_changes_while_a_file_arrives_is_noticed(
    inside: Path, incoming: FileReceiver
) -> None:
    incoming.write_chunk(FileData(name="target", data=b"x"))
    os.mkfifo(inside / "target")
    with pytest.raises(CopyFailed, match="it is a pipe"):
        incoming.write_chunk(FileData(eof=True))
    incoming.close()
    assert [each.name for each in inside.iterdir()] == ["target"]


def test_a_directory_swapped_for_a_link_passes_on_no_rights(
    inside: Path, outside: Path, incoming: FileReceiver
) -> None:
    incoming.write_chunk(FileData(name="tree", is_dir=True, mode=0o777))
    (inside / "tree").rename(inside / "moved")
    (inside / "tree").symlink_to(outside)
    assert incoming.write_chunk(FileData(eof=True))
    assert rights(outside) == 0o700
    assert rights(inside / "moved") == 0o777


def test_a_parent_swapped_for_a_link_lets_nothing_out(
    inside: Path, outside: Path, incoming: FileReceiver
) -> None:
    incoming.write_chunk(FileData(name="tree/file", data=b"payload"))
    (inside / "tree").rename(inside / "moved")
    (inside / "tree").symlink_to(outside)
    (temporary,) = (inside / "moved").iterdir()
    (outside / temporary.name).write_text("planted")
    assert incoming.write_chunk(FileData(eof=True))
    assert not (outside / "file").exists()
    assert (inside / "moved" / "file").read_bytes() == b"payload"


@pytest.mark.parametrize("name", ["link/file", "link/deeper/file", "tree/link/file"])
def test_no_link_on_the_way_is_followed(
    inside: Path, outside: Path, incoming: FileReceiver, name: str
) -> None:
    (inside / "tree").mkdir()
    for place in (inside, inside / "tree"):
        (place / "link").symlink_to(outside)
    with pytest.raises(InvalidRequest, match="by a link"):
        incoming.write_chunk(whole(name))
    assert list(outside.iterdir()) == []


def test_a_destination_that_is_a_link_is_followed_once(tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(outside)
    other = tmp_path / "other"
    other.mkdir()
    copy = FileReceiver(link, MULTIPLE_FILES, preserve=False)
    try:
        link.unlink()
        link.symlink_to(other)
        assert copy.write_chunk(whole("file"))
    finally:
        copy.close()
    assert (outside / "file").exists()
    assert list(other.iterdir()) == []


def test_a_name_longer_than_a_path_is_refused(inside: Path, incoming: FileReceiver) -> None:
    with pytest.raises(CogworkError, match="longer than 4096 bytes"):
        incoming.write_chunk(whole("a/" * 3000 + "x"))
    assert list(inside.iterdir()) == []
