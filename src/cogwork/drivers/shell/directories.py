"""Access to directories without following links.

Every operation is relative to a directory descriptor, so a directory that is replaced by a link
meanwhile cannot redirect the operation.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path

DIRECTORY_MODE = 0o750
_SEARCH_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRNOS = (errno.ELOOP, errno.ENOTDIR)
_FILE_TYPES = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class LinkInPath(Exception):
    """A component of a path is a link, or is not a directory."""


def open_root(path: Path) -> int:
    """Open the directory that the client named. Links in its path are followed."""
    return os.open(path, _SEARCH_FLAGS)


def open_below(root: int, parts: Sequence[str]) -> int:
    """Return the descriptor of a directory below the root; create missing directories.

    Raise LinkInPath if a component is a link or not a directory.
    """
    current = os.dup(root)
    try:
        for part in parts:
            below = _open_or_make(current, part)
            os.close(current)
            current = below
    except BaseException:
        os.close(current)
        raise
    return current


def _open_or_make(parent: int, name: str) -> int:
    try:
        return _open(parent, name, _SEARCH_FLAGS | os.O_NOFOLLOW)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):  # it was created meanwhile
            os.mkdir(name, DIRECTORY_MODE, dir_fd=parent)
        return _open(parent, name, _SEARCH_FLAGS | os.O_NOFOLLOW)


def open_for_metadata(parent: int, name: str) -> int:
    """Return a directory descriptor that allows setting permissions and times."""
    return _open(parent, name, _READ_FLAGS)


def _open(parent: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno in _LINK_ERRNOS:
            raise LinkInPath(name) from error
        raise


def create(parent: int, name: str) -> int:
    """Create a file for writing; it must not exist."""
    return os.open(name, _CREATE_FLAGS, 0o600, dir_fd=parent)


def stat_entry(parent: int, name: str) -> os.stat_result | None:
    """Return the status of the entry, or None if it is missing. A link is not followed."""
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def why_not_replaceable(parent: int, name: str) -> str | None:
    """Return why a file cannot replace the entry, or None if it can.

    Only regular files and links to regular files can be replaced. A link itself is replaced, not
    its target.
    """
    try:
        mode = os.stat(name, dir_fd=parent).st_mode
    except OSError:
        return None  # the entry is missing, or is a link without a target
    if stat.S_ISREG(mode):
        return None
    kind = _FILE_TYPES.get(stat.S_IFMT(mode), "something else")
    return f"it is {kind}; only a regular file can be replaced"


def rename(parent: int, old: str, new: str) -> None:
    os.rename(old, new, src_dir_fd=parent, dst_dir_fd=parent)


def remove(parent: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
