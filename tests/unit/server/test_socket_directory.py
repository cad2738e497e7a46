"""The private directory of the server's own sockets."""

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

from cogwork.server.socket_directory import private_directory

LONGEST_PATH = 107
"""Bytes of a unix socket's path."""


@pytest.fixture
def parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary directory with a short name."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        yield Path(directory)


@pytest.fixture
def dead() -> int:
    """The id of a process that is no more."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_it_is_nobody_elses_and_gone_at_the_end(parent: Path) -> None:
    with private_directory() as directory:
        assert directory.parent == parent
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert f"-{os.getpid()}-" in directory.name
        bound(directory / "grpc").close()
    assert list(parent.iterdir()) == []


def test_it_is_gone_after_an_error_too(parent: Path) -> None:
    with pytest.raises(RuntimeError), private_directory():
        raise RuntimeError
    assert list(parent.iterdir()) == []


def test_what_killed_servers_left_goes(parent: Path, dead: int) -> None:
    left = parent / f"cogwork-{dead}-abcd1234"
    left.mkdir(0o700)
    bound(left / "grpc").close()
    bound(left / "17").close()
    empty = parent / f"cogwork-{dead}-efgh5678"
    empty.mkdir(0o700)
    with private_directory() as directory:
        assert list(parent.iterdir()) == [directory]


def test_what_running_servers_have_stays(parent: Path) -> None:
    with private_directory() as first, private_directory() as second:
        assert first != second
        assert sorted(parent.iterdir()) == sorted([first, second])


def test_what_is_somebody_elses_stays(parent: Path, dead: int) -> None:
    """Others may name their directories likewise."""
    photos = parent / f"cogwork-{dead}-photos"
    photos.mkdir()
    (photos / "cat.png").write_text("meow")
    target = parent / "target"
    target.mkdir()
    bound(target / "grpc").close()
    link = parent / f"cogwork-{dead}-link"
    link.symlink_to(target)
    file = parent / f"cogwork-{dead}-notes"
    file.write_text("mine")
    (parent / "cogwork-x-y").mkdir()
    before = sorted(parent.rglob("*"))
    with private_directory():
        pass
    assert sorted(parent.rglob("*")) == before


def test_ids_that_no_process_can_have_are_nobodys_business(parent: Path) -> None:
    for name in ("cogwork-99999999999999999999-a", "cogwork-1x-a", "cogwork-0-a"):
        (parent / name).mkdir()
    with private_directory() as directory:
        assert directory.exists()


@pytest.mark.parametrize("letter", ["x", "ü"])
def test_a_socket_in_it_can_be_bound_however_long_the_path(
    parent: Path, monkeypatch: pytest.MonkeyPatch, letter: str
) -> None:
    for length in range(len(str(parent)) + 2, 130):
        deep = parent / (letter * (length - len(str(parent)) - 1))
        deep.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        with private_directory() as directory:
            # The longest process id there is, and a million connections.
            spare = len("4194304") - len(str(os.getpid()))
            assert len(os.fsencode(directory / "1000000")) + spare <= LONGEST_PATH
            bound(directory / "1000000").close()
            assert directory.parent in (deep, Path("/tmp"))
            assert directory.parent == deep or len(os.fsencode(deep)) > 65
        assert not directory.exists()


def bound(path: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    return made
