"""Takes away what others may change in the directory with the state of this program."""

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
    """Close directories that everyone may change, and return them.

    Other users of this computer could replace a configuration or a key there. They were made by
    an earlier version, or by hand, while the umask was 0.
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
    """Return whether everyone could change the directory, and cannot any more."""
    try:
        descriptor = os.open(directory, _FLAGS)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        # Directories such as /tmp are meant for everyone.
        is_shared = status.st_mode & stat.S_ISVTX
        if status.st_uid != os.geteuid() or not status.st_mode & stat.S_IWOTH or is_shared:
            return False
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & ~0o022)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
