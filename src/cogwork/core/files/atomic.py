"""Atomic file replacement: readers see either all of the old content or all of the new content."""

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from cogwork.core.files.complete_write import write_all

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace the content of ``path`` with ``data``, and sync it to disk before returning.

    If this fails, the old file is unchanged. A symbolic link at ``path`` is replaced, not followed.
    """
    make_directory(path.parent)
    with _open(path.parent, _DIRECTORY_FLAGS) as directory:
        # Allow one writer at a time, so that every temporary file found here belongs to a killed
        # writer.
        fcntl.flock(directory, fcntl.LOCK_EX)
        _remove_stale(path)
        _replace(path, data, mode)
        os.fsync(directory)


def make_directory(directory: Path, mode: int = 0o700) -> None:
    """Create a directory and its missing parents, accessible only to this user.

    `Path.mkdir` would leave the parents open to everyone if the umask is 0.
    """
    if directory.is_dir():
        return
    if directory.parent.is_file():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory))
    make_directory(directory.parent)
    directory.mkdir(mode, exist_ok=True)
    with _open(directory.parent, _DIRECTORY_FLAGS) as parent:
        os.fsync(parent)


def _remove_stale(path: Path) -> None:
    temporary = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.tmp")
    for entry in path.parent.iterdir():
        if temporary.fullmatch(entry.name):
            entry.unlink()


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with _open(temporary, _CREATE_FLAGS, mode) as descriptor:
        try:
            # Set the mode again, because the umask may have cleared some bits.
            os.fchmod(descriptor, mode)
            write_all(descriptor, data)
            os.fsync(descriptor)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _open(path: Path, flags: int, mode: int = 0) -> Iterator[int]:
    descriptor = os.open(path, flags, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
