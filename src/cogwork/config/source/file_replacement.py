"""Replace the text of a configuration file, keeping its mode and its owner."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from cogwork.core.files import atomic

_PRIVATE = 0o600


def replace_text(path: Path, text: str) -> None:
    """Write the text atomically, through symbolic links. Raise OSError."""
    target = path.resolve()
    try:
        before = target.stat()
    except FileNotFoundError:
        atomic.write(target, text.encode(), _PRIVATE)
        return
    atomic.write(target, text.encode(), stat.S_IMODE(before.st_mode))
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
