"""A directory in memory for the files of tests, most of which would wait for the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_DIRECTORY: Final = Path("/dev/shm")
_ROOM: Final = 6 << 30
"""How many bytes must be free: three times what the largest stage needs at a time."""


def find_memory_directory(directory: Path = _DIRECTORY, room: int = _ROOM) -> Path | None:
    """Return it if it has room, and if programs in it may be started."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    is_usable = (
        os.access(directory, os.W_OK)
        and not found.f_flag & os.ST_NOEXEC
        and found.f_bavail * found.f_frsize >= room
    )
    return directory if is_usable else None
