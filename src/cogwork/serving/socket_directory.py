"""The private directory that holds the server's Unix sockets."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "cogwork-"
_CERTIFICATE_NAME = re.compile(r"\.?certificate[0-9]+\.pem(\.[0-9a-f]{16}\.tmp)?")
_STALE_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+")
_MAX_PARENT_PATH = 20
"""Maximum bytes of the parent directory's path. It must be short: a socket path has at most 107
bytes, which include the client's address for a relayed connection."""


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Create a directory that only this user can access, and remove it at the end.

    First, remove the directories of servers that were killed.
    """
    for entry in _find_parent().iterdir():
        match = _STALE_NAME.fullmatch(entry.name)
        if match is not None and not _is_running(match[1]):
            _remove_stale(entry)
    with further_directory() as directory:
        yield directory


@contextlib.contextmanager
def further_directory() -> Iterator[Path]:
    """Create another private directory, for some of the sockets."""
    directory = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=_find_parent()))
    try:
        yield directory
    finally:
        remove_directory(directory)


def _find_parent() -> Path:
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > _MAX_PARENT_PATH:
        parent = Path("/tmp")  # noqa: S108 - mkdtemp makes it private
    return parent


def remove_directory(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _remove_stale(directory: Path) -> None:
    """Remove the directory if it holds only our files. Otherwise, it may belong to another program.

    Copies of certificates must be removed, because they contain private keys.
    """
    with contextlib.suppress(OSError):
        if not directory.is_symlink() and all(map(_is_ours, directory.iterdir())):
            shutil.rmtree(directory)


def _is_ours(entry: Path) -> bool:
    return entry.is_socket() or _CERTIFICATE_NAME.fullmatch(entry.name) is not None


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    return True
