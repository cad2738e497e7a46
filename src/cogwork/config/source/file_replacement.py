"""Replace the text of a configuration file, keeping its mode and its owner."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from cogwork.core.files import atomic

_PRIVATE = 0o600


def replace_text(path: Path, text: str, *, is_private: bool = False) -> None:
    """Write the text atomically, through symbolic links. Raise OSError.

    If `is_private`, users who neither own the file nor belong to its group lose their access.
    """
    target = path.resolve()
    try:
        before = target.stat()
    except FileNotFoundError:
        atomic.write(target, text.encode(), _PRIVATE)
        return
    mode = stat.S_IMODE(before.st_mode)
    atomic.write(target, text.encode(), mode & ~0o007 if is_private else mode)
    if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        # Restore the owner if possible. Only root may do that; other users become the owner
        # themselves.
        with contextlib.suppress(PermissionError):
            os.chown(target, before.st_uid, before.st_gid)


def find_obstacle(path: Path) -> str | None:
    """Return the reason why the file cannot be replaced, or None if it probably can be."""
    directory = path.resolve().parent
    if os.access(directory, os.W_OK | os.X_OK):
        return None
    return f"the server may not write to {directory}; change its permissions"
