"""The private directory of the server's sockets."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.serving.socket_directory import private_directory

MAX_PATH_LENGTH = 107
"""Maximum length of a Unix socket path in bytes."""


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with a short name."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


@pytest.fixture
def dead_pid() -> int:
    """The id of a process that has ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_directory_is_private_and_removed_at_the_end(parent: Path) -> None:
    with private_directory() as directory:
        assert directory.parent == parent
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert f"-{os.getpid()}-" in directory.name
        bind_socket(directory / "grpc").close()
    assert list(parent.iterdir()) == []


def test_directory_is_removed_after_an_error(parent: Path) -> None:
    with pytest.raises(RuntimeError), private_directory():
        raise RuntimeError
    assert list(parent.iterdir()) == []


def test_directories_of_killed_servers_are_removed(parent: Path, dead_pid: int) -> None:
    left = parent / f"cogwork-{dead_pid}-abcd1234"
    left.mkdir(0o700)
    bind_socket(left / "grpc").close()
    bind_socket(left / "17").close()
    empty = parent / f"cogwork-{dead_pid}-efgh5678"
    empty.mkdir(0o700)
    with private_directory() as directory:
        assert list(parent.iterdir()) == [directory]


def test_directories_of_running_servers_are_kept(parent: Path) -> None:
    with private_directory() as first, private_directory() as second:
        assert first != second
        assert sorted(parent.iterdir()) == sorted([first, second])


def test_foreign_directories_are_kept(parent: Path, dead_pid: int) -> None:
    """Other programs may use similar directory names."""
    photos = parent / f"cogwork-{dead_pid}-photos"
    photos.mkdir()
    (photos / "cat.png").write_text("meow")
    target = parent / "target"
    target.mkdir()
    bind_socket(target / "grpc").close()
    link = parent / f"cogwork-{dead_pid}-link"
    link.symlink_to(target)
    file = parent / f"cogwork-{dead_pid}-notes"
    file.write_text("mine")
    (parent / "cogwork-x-y").mkdir()
    before = sorted(parent.rglob("*"))
    with private_directory():
        pass
    assert sorted(parent.rglob("*")) == before


def test_impossible_process_ids_are_tolerated(parent: Path) -> None:
    for name in ("cogwork-99999999999999999999-a", "cogwork-1x-a", "cogwork-0-a"):
        (parent / name).mkdir()
    with private_directory() as directory:
        assert directory.exists()


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_socket_can_be_bound_for_any_path_length(
    parent: Path, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    for length in range(len(str(parent)) + 2, 130):
        deep = parent / (letter * (length - len(str(parent)) - 1))
        deep.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        with private_directory() as directory:
            # The longest process id, a million connections and the longest address.
            name = f"1000000r@ipv6:[{':'.join(['ffff'] * 8)}]:65535"
            spare = len("4194304") - len(str(os.getpid()))
            assert len(os.fsencode(directory / name)) + spare <= MAX_PATH_LENGTH
            bind_socket(directory / name).close()
            assert directory.parent in (deep, Path("/tmp"))
            assert directory.parent == deep or len(os.fsencode(deep)) > 20
        assert not directory.exists()


def bind_socket(path: Path) -> socket.socket:
    unix_socket = socket.socket(socket.AF_UNIX)
    unix_socket.bind(str(path))
    return unix_socket
