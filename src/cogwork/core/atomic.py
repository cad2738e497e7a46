"""Replacing a file so that whoever reads it, whenever, finds the old content or the new, whole."""

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Make ``data`` the content of ``path``, safely on the disk when this returns.

    A failure leaves the old file as it was. A symbolic link at ``path`` is replaced, not followed.
    """
    make_directory(path.parent)
    with _opened(path.parent, _DIRECTORY) as directory:
        # One writer at a time, so that every temporary file found here is a killed writer's.
        fcntl.flock(directory, fcntl.LOCK_EX)
        _remove_stale(path)
        _replace(path, data, mode)
        os.fsync(directory)


def make_directory(directory: Path) -> None:
    """With all that is missing above it, for this user alone."""
    if directory.is_dir():
        return
    make_directory(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)
    with _opened(directory.parent, _DIRECTORY) as parent:
        os.fsync(parent)


def _remove_stale(path: Path) -> None:
    temporary = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{16}}\.tmp")
    for entry in path.parent.iterdir():
        if temporary.fullmatch(entry.name):
            entry.unlink()


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with _opened(temporary, _CREATE, mode) as descriptor:
        try:
            # The umask may have taken bits away.
            os.fchmod(descriptor, mode)
            _write_all(descriptor, data)
            os.fsync(descriptor)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@contextlib.contextmanager
def _opened(path: Path, flags: int, mode: int = 0) -> Iterator[int]:
    descriptor = os.open(path, flags, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
