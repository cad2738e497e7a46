"""Where a module listens: a Unix socket in a private directory, or a port when asked."""

from __future__ import annotations

import base64
import hashlib
import socket
from pathlib import Path

from cogwork.core.errors import CogworkError

LONGEST = 103
"""Bytes of a path that every system takes for a socket."""
_SUFFIX = ".sock"
_DIGITS = 5


class AddressTooLong(CogworkError):
    """A directory in which no socket can be."""

    status = "FAILED_PRECONDITION"


def unix_address(directory: Path, name: str, token: str) -> str:
    """A path of its own for each start, by its token. A long name is cut, and told by its hash."""
    whole = f"{name}-{token}"
    path = f"{directory}/{whole}{_SUFFIX}"
    if len(path.encode()) <= LONGEST:
        return path
    digest = base64.b32encode(hashlib.sha256(whole.encode()).digest()).decode()[:_DIGITS]
    end = f"-{digest}{_SUFFIX}"
    room = LONGEST - len(f"{directory}/{end}".encode())
    if room < 1:
        raise AddressTooLong(
            f"a socket in {directory} would have a path of more than {LONGEST} bytes; "
            "set TMPDIR to a shorter one"
        )
    return f"{directory}/{name.encode()[:room].decode(errors='ignore')}{end}"


def free_port() -> int:
    """One of 127.0.0.1 that nobody has right now; another may take it before the module does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def removed(path: str) -> None:
    """See to it that no socket is left there. An address that is no path is left alone."""
    if path.startswith("/"):
        Path(path).unlink(missing_ok=True)
