"""Reads a configuration file, or says why it cannot be read."""

from __future__ import annotations

import stat
from pathlib import Path

from cogwork.core.errors import CogworkError

LARGEST = 16 * 1024 * 1024


class Unreadable(CogworkError):
    """The file cannot be read as text; the message is a sentence without the path."""


def read_text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            # A pipe would keep the reader waiting for whoever writes to it.
            raise Unreadable("it is not a regular file")
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise Unreadable("there is no such file; check the path") from None
    except IsADirectoryError:
        raise Unreadable("it is a directory; name the file in it") from None
    except PermissionError:
        raise Unreadable("this user may not read it; check its permissions") from None
    except OSError as error:
        raise Unreadable(f"reading it failed: {error.strerror or error}") from None
    return decoded(data)


def decoded(data: bytes) -> str:
    if len(data) > LARGEST:
        raise Unreadable(f"it is larger than {LARGEST // 1024 // 1024} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"it is not UTF-8 text: line {line}, byte {error.start}") from None
