"""Read a configuration file, or report why it cannot be read."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from cogwork.core.errors import CogworkError
from cogwork.core.files.file_identity import FileIdentity, identify
from cogwork.core.os_error_text import os_reason

MAX_FILE_SIZE = 16 * 1024 * 1024


_PERMANENT_ERRORS = frozenset({errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL})
"""Errors that persist until the file or its path changes. All other errors may be temporary."""


class Unreadable(CogworkError):
    """The file cannot be read as text. The message does not include the path."""


class NoSuchFile(Unreadable):
    """The file does not exist."""


class TemporarilyUnreadable(Unreadable):
    """Reading failed, but may succeed later without a change of the file."""


def file_signature(path: Path) -> FileIdentity | None:
    """Return a value that changes whenever the file is written or replaced; None if it is
    missing."""
    try:
        return identify(path.stat())
    except OSError:
        return None


def read_text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            # Reading a pipe would block until another process writes to it.
            raise Unreadable("not a regular file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_SIZE + 1)
    except OSError as error:
        raise _to_unreadable(error) from None
    except MemoryError:
        raise TemporarilyUnreadable("not enough memory to read the file") from None
    return decode_text(data)


def _to_unreadable(error: OSError) -> Unreadable:
    if isinstance(error, FileNotFoundError):
        return NoSuchFile("the file does not exist; check the path")
    if isinstance(error, IsADirectoryError):
        return Unreadable("the path is a directory; name a file in it")
    if isinstance(error, PermissionError):
        return TemporarilyUnreadable("permission denied; check the permissions of the file")
    reason = f"reading failed: {os_reason(error)}"
    return Unreadable(reason) if error.errno in _PERMANENT_ERRORS else TemporarilyUnreadable(reason)


def decode_text(data: bytes) -> str:
    if len(data) > MAX_FILE_SIZE:
        raise Unreadable(f"the file is larger than {MAX_FILE_SIZE // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"not UTF-8 text: line {line}, byte {error.start}") from None
