"""Removes the write permission of other users from the directory with Cogwork's state."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_MAX_DIRECTORIES = 10_000
_DEPTH = 3
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def protect_home(home: Path) -> list[Path]:
    """Remove the write permission of others from directories, and return the changed directories.

    With this permission, other users of this computer could replace a configuration or a key.
    Earlier versions granted it if the umask was 0.
    """
    found = itertools.islice(_list_directories(home.resolve(), _DEPTH), _MAX_DIRECTORIES)
    return [each for each in found if _close(each)]


def _list_directories(directory: Path, depth: int) -> Iterator[Path]:
    yield directory
    if depth:
        try:
            entries = [
                Path(each) for each in os.scandir(directory) if each.is_dir(follow_symlinks=False)
            ]
        except OSError:
            return
        for entry in entries:
            yield from _list_directories(entry, depth - 1)


def _close(directory: Path) -> bool:
    """Remove the write permission of others. Return whether the directory had it."""
    try:
        descriptor = os.open(directory, _FLAGS)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        # The sticky bit marks directories that are meant to be shared, such as /tmp.
        is_shared = status.st_mode & stat.S_ISVTX
        if status.st_uid != os.geteuid() or not status.st_mode & stat.S_IWOTH or is_shared:
            return False
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~0o022)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
