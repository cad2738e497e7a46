"""Addresses that only this computer can reach: Unix sockets in a private directory, free ports."""

from __future__ import annotations

import base64
import hashlib
import socket
from pathlib import Path

from cogwork.core.errors import CogworkError

MAX_SOCKET_PATH = 103
"""Maximum length in bytes of a socket path that every system supports."""
_SUFFIX = ".sock"
_DIGEST_LENGTH = 5


class AddressTooLong(CogworkError):
    """The path of the directory is too long for a Unix socket."""

    status = "FAILED_PRECONDITION"


def unix_address(directory: Path, name: str, token: str) -> str:
    """Return the path of a Unix socket, which the token makes unique. A long name is truncated and
    gets a hash."""
    full_name = f"{name}-{token}"
    path = f"{directory}/{full_name}{_SUFFIX}"
    if len(path.encode()) <= MAX_SOCKET_PATH:
        return path
    digest = base64.b32encode(hashlib.sha256(full_name.encode()).digest()).decode()[:_DIGEST_LENGTH]
    end = f"-{digest}{_SUFFIX}"
    room = MAX_SOCKET_PATH - len(f"{directory}/{end}".encode())
    if room < 1:
        raise AddressTooLong(
            f"the path of a socket in {directory} would exceed {MAX_SOCKET_PATH} bytes; "
            "set TMPDIR to a shorter path"
        )
    return f"{directory}/{name.encode()[:room].decode(errors='ignore')}{end}"


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now. Another program may take it before the caller
    does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def remove_socket(path: str) -> None:
    """Remove the socket at this path. An address that is not a path is ignored."""
    if path.startswith("/"):
        Path(path).unlink(missing_ok=True)
