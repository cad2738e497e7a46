"""Opens the sockets for an address to listen on, and explains failures."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

SocketAddress = tuple[int, tuple[Any, ...]]
"""An address family and an address of that family."""

LOCALHOST = "localhost"


class CannotListen(CogworkError):
    """A listening socket cannot be opened. The message explains why and what to do."""


async def resolve_addresses(host: str, port: int) -> list[SocketAddress]:
    """Return the addresses of a host. Raise CannotListen."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, ValueError) as error:
        if host == LOCALHOST:
            return _loopback_addresses(port)
        why = os_reason(error) if isinstance(error, OSError) else "it is not a valid host name"
        raise CannotListen(
            f'cannot listen on {host}:{port}: "{host}" is not an address of this computer '
            f"({why}); check network.bind_address"
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _loopback_addresses(port: int) -> list[SocketAddress]:
    """Return the loopback addresses for "localhost" if /etc/hosts is missing, as in small
    containers."""
    return [(socket.AF_INET, ("127.0.0.1", port)), (socket.AF_INET6, ("::1", port, 0, 0))]


def address_of(listener: socket.socket) -> SocketAddress:
    return listener.family, listener.getsockname()


def open_listeners(addresses: list[SocketAddress], attempts: int = 5) -> list[socket.socket]:
    """Open one socket per address, all on the same port. Skip addresses that this computer lacks.

    The port that the system chose for the first address may be in use on another address. In that
    case, the system chooses again.
    """
    listeners: list[socket.socket] = []
    failures: list[OSError] = []
    for family, (host, port, *rest) in addresses:
        port = port or (listeners[0].getsockname()[1] if listeners else 0)
        try:
            listeners.append(_open_listener(family, (host, port, *rest)))
        except OSError as error:
            failures.append(error)
    in_use = [error for error in failures if error.errno == errno.EADDRINUSE]
    if listeners and not in_use:
        return listeners
    for listener in listeners:
        listener.close()
    if in_use and attempts > 1 and not any(port for _, (_, port, *_) in addresses):
        return open_listeners(addresses, attempts - 1)
    raise (in_use or failures)[0]


def _open_listener(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(socket.SOMAXCONN)
    except OSError:
        listener.close()
        raise
    return listener


def open_unix_listener(path: str, backlog: int = socket.SOMAXCONN) -> socket.socket:
    """Listen on a Unix socket. Raise OSError if a file exists at the path, or if its directory is
    missing."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.bind(path)
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener


def explain_bind_error(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "the port is in use by another program; stop it or set network.bind_address"
        case errno.EACCES:
            return "permission denied; use a port above 1023 or set network.bind_address"
        case errno.EADDRNOTAVAIL:
            return "this computer has no such address; check network.bind_address"
        case _:
            return f"{os_reason(error)}; check network.bind_address"
