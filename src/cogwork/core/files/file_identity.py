"""The identity of a file's content, without reading it."""

from __future__ import annotations

import os

FileIdentity = tuple[int, int, int, int, int]


def identify(found: os.stat_result) -> FileIdentity:
    """Return a value that changes whenever the file is written or replaced."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
