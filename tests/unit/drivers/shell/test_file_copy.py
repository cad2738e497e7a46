"""Received files are written into regular files only, and not through links."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.resource.sdk import clean_import as sdk

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
def receiver(inside: Path) -> Iterator[FileReceiver]:
    copy = FileReceiver(inside, MULTIPLE_FILES, preserve=True)
    yield copy
    copy.close()


def permissions(path: Path) -> int:
    return path.stat().st_mode & 0o777


def complete_file(name: str, data: bytes = b"x") -> FileData:
    return FileData(name=name, data=data, eof=True)


@pytest.mark.parametrize("kind", ["pipe", "socket", "directory", "link to a pipe"])
def test_only_a_regular_file_is_replaced(inside: Path, receiver: FileReceiver, kind: str) -> None:
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
        receiver.write_chunk(complete_file("target"))
    assert target.lstat().st_ino == before.st_ino
    assert not list(inside.glob(".*"))


def test_pipe_as_destination_is_kept(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    copy = FileReceiver(pipe, SINGLE_FILE, preserve=False)
    try:
        with pytest.raises(CopyFailed, match="it is a pipe"):
            copy.write_chunk(complete_file("file"))
    finally:
        copy.close()
    assert pipe.is_fifo()


def test_target_that_becomes_a_pipe_during_the_copy_is_refused(
    inside: Path, receiver: FileReceiver
) -> None:
    receiver.write_chunk(FileData(name="target", data=b"x"))
    os.mkfifo(inside / "target")
    with pytest.raises(CopyFailed, match="it is a pipe"):
        receiver.write_chunk(FileData(eof=True))
    receiver.close()
    assert [each.name for each in inside.iterdir()] == ["target"]


def test_permissions_are_not_applied_through_a_swapped_link(
    inside: Path, outside: Path, receiver: FileReceiver
) -> None:
    receiver.write_chunk(FileData(name="tree", is_dir=True, mode=0o777))
    (inside / "tree").rename(inside / "moved")
    (inside / "tree").symlink_to(outside)
    assert receiver.write_chunk(FileData(eof=True))
    assert permissions(outside) == 0o700
    assert permissions(inside / "moved") == 0o777


def test_file_is_not_written_through_a_swapped_parent_link(
    inside: Path, outside: Path, receiver: FileReceiver
) -> None:
    receiver.write_chunk(FileData(name="tree/file", data=b"payload"))
    (inside / "tree").rename(inside / "moved")
    (inside / "tree").symlink_to(outside)
    (temporary,) = (inside / "moved").iterdir()
    (outside / temporary.name).write_text("planted")
    assert receiver.write_chunk(FileData(eof=True))
    assert not (outside / "file").exists()
    assert (inside / "moved" / "file").read_bytes() == b"payload"


@pytest.mark.parametrize("name", ["link/file", "link/deeper/file", "tree/link/file"])
def test_links_in_the_path_are_not_followed(
    inside: Path, outside: Path, receiver: FileReceiver, name: str
) -> None:
    (inside / "tree").mkdir()
    for place in (inside, inside / "tree"):
        (place / "link").symlink_to(outside)
    with pytest.raises(InvalidRequest, match="is a link, or is not a directory"):
        receiver.write_chunk(complete_file(name))
    assert list(outside.iterdir()) == []


def test_destination_link_is_resolved_once(tmp_path: Path, outside: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(outside)
    other = tmp_path / "other"
    other.mkdir()
    copy = FileReceiver(link, MULTIPLE_FILES, preserve=False)
    try:
        link.unlink()
        link.symlink_to(other)
        assert copy.write_chunk(complete_file("file"))
    finally:
        copy.close()
    assert (outside / "file").exists()
    assert list(other.iterdir()) == []


def test_too_long_path_is_refused(inside: Path, receiver: FileReceiver) -> None:
    with pytest.raises(CogworkError, match="longer than 4096 bytes"):
        receiver.write_chunk(complete_file("a/" * 3000 + "x"))
    assert list(inside.iterdir()) == []
