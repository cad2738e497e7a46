"""The private directory in which the server's own unix sockets live."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "cogwork-"
_LEFT = re.compile(rf"{_PREFIX}(\d+)-\w+")
_LONGEST = 70
"""A unix socket's path has at most 107 bytes, and the names in it are among them."""


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Nobody else's, and gone at the end; those of servers that were killed go now."""
    parent = Path(tempfile.gettempdir())
    if len(os.fsencode(parent)) > _LONGEST:
        parent = Path("/tmp")  # noqa: S108 - mkdtemp makes it private
    for entry in parent.iterdir():
        left = _LEFT.fullmatch(entry.name)
        if left is not None and not _is_running(left[1]):
            _remove_left(entry)
    made = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
    try:
        yield Path(made)
    finally:
        remove(Path(made))


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def _remove_left(left: Path) -> None:
    """Only if it is what a server leaves: others may give their directories such names."""
    with contextlib.suppress(OSError):
        if not left.is_symlink() and all(entry.is_socket() for entry in left.iterdir()):
            shutil.rmtree(left)


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    return True
