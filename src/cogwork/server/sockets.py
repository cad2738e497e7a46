"""The private directory in which the server's own unix sockets live."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "cogwork-"
_LONGEST = 80
"""A unix socket's path has at most 107 characters, and the name of the socket is among them."""


@contextlib.contextmanager
def private_directory() -> Iterator[Path]:
    """Nobody else's, and gone at the end; those of servers that were killed go now."""
    parent = Path(tempfile.gettempdir())
    if len(str(parent)) > _LONGEST:
        parent = Path("/tmp")  # noqa: S108 - mkdtemp makes it private
    for stale in parent.glob(f"{_PREFIX}[0-9]*-*"):
        if not _is_running(stale.name.removeprefix(_PREFIX).partition("-")[0]):
            shutil.rmtree(stale, ignore_errors=True)
    made = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
