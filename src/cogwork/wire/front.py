"""The one public port: gRPC and HTTP/1.1 told apart by their first bytes.

grpc core cannot share a port, so HTTP/2 connections are spliced to its listener on a private unix
socket. HTTP/1.1 connections are handed over whole. TLS will end here too.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
import logging
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from cogwork.core.errors import CogworkError
from cogwork.wire.splice import CHUNK, Splice

_HTTP2 = b"PRI"
"""How an HTTP/2 connection begins, and no HTTP/1.1 method does."""

_log = logging.getLogger("rdk.networking")


class CannotListen(CogworkError):
    """The address cannot be listened on; the message says why and what to do."""


OnClient = Callable[[str, bool], None]
"""Gets the peer, and whether it is here now. Returns at once."""


class Http(Protocol):
    """Who serves what is not HTTP/2."""

    @property
    def connections(self) -> int: ...

    async def take(self, connection: socket.socket) -> None:
        """From now on it is theirs, with every byte that was sent."""

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class FrontLimits:
    connections: int = 1024
    peek: float = 5.0
    """Seconds a connection may take to say what it speaks."""
    look_again: float = 0.02
    """Seconds between two looks at a first word that is still incomplete."""
    pause: float = 0.5
    """Seconds without accepting, when the process has no descriptor left."""
    unread: float = 80.0
    """Seconds that a client may leave unread what it was sent."""


class Front:
    def __init__(self, grpc_socket: Path, http: Http, limits: FrontLimits | None = None) -> None:
        self.grpc_socket = grpc_socket
        """Where newcomers who speak gRPC are taken to."""
        self._http = http
        self._limits = limits or FrontLimits()
        self._listeners: list[socket.socket] = []
        self._undecided: dict[socket.socket, asyncio.Task[None]] = {}
        self._splices: dict[str, Splice] = {}
        self._peers: dict[str, str] = {}
        self._buffer = memoryview(bytearray(CHUNK))
        self._numbers = itertools.count(1)
        self._refused = 0
        self.on_client: OnClient = lambda *_: None
        """Told of gRPC clients that come and go."""

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [listener.getsockname()[:2] for listener in self._listeners]

    @property
    def connections(self) -> int:
        return len(self._undecided) + len(self._splices) + self._http.connections

    def peer(self, name: str) -> str:
        """Who is behind a connection of the gRPC listener, given the name it sees."""
        peer = self._peers.get(name.rpartition("/")[2])
        return peer if peer is not None else unquote(name)

    async def listen(self, host: str, port: int) -> None:
        """Listen there and no longer elsewhere; connections that are open stay."""
        places = await _places(host, port)
        before = [_place_of(listener) for listener in self._listeners]
        if port in {own for _, own in self.addresses}:
            # We would be in our own way: every interface includes the one that we have.
            self.stop_listening()
        try:
            fresh = _listening(places)
        except OSError as error:
            if before and not self._listeners:
                self._start(_listening(before))
            raise CannotListen(
                f"cannot listen on {host or '*'}:{port}: {_advice(error)}"
            ) from error
        self.stop_listening()
        self._start(fresh)

    async def aclose(self) -> None:
        self.stop_listening()
        for task in self._undecided.values():
            task.cancel()
        await asyncio.gather(*self._undecided.values(), return_exceptions=True)
        for splice in tuple(self._splices.values()):
            splice.close()
        await self._http.aclose()

    def stop_listening(self) -> None:
        """Nobody new; connections that are open stay."""
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()
        self._listeners = []

    def _start(self, listeners: list[socket.socket]) -> None:
        self._listeners = listeners
        for listener in listeners:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, address = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._pause(listener, error)
            return
        connection.setblocking(False)
        if self.connections >= self._limits.connections and not self._make_room():
            self._refuse(connection, address)
            return
        task = asyncio.get_running_loop().create_task(self._decide(connection, address))
        self._undecided[connection] = task
        task.add_done_callback(lambda _: self._undecided.pop(connection, None))

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        """Out of descriptors: those who wait in the backlog are served when some are free."""
        _log.error("cannot accept connections: %s; trying again", error.strerror)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener.fileno())

        def resume() -> None:
            if listener in self._listeners:
                loop.add_reader(listener.fileno(), self._accept, listener)

        loop.call_later(self._limits.pause, resume)

    def _make_room(self) -> bool:
        """Whoever has been silent longest gives way to whoever comes."""
        for task in self._undecided.values():
            if not task.cancelling():
                task.cancel()
                return True
        return False

    def _refuse(self, connection: socket.socket, address: tuple[str, int]) -> None:
        connection.close()
        self._refused += 1
        if self._refused.bit_count() == 1:
            _log.warning(
                "refused a connection from %s: all %d are taken (%d refused so far)",
                address[0],
                self._limits.connections,
                self._refused,
            )

    async def _decide(self, connection: socket.socket, address: tuple[str, int]) -> None:
        try:
            _prepare(connection, self._limits.unread)
            async with asyncio.timeout(self._limits.peek):
                is_http2 = await self._speaks_http2(connection)
            if is_http2 is None:
                connection.close()
            elif is_http2:
                self._splice(connection, address)
            else:
                await self._http.take(connection)
        except TimeoutError:
            _log.debug("%s said nothing for %gs", address[0], self._limits.peek)
            connection.close()
        except OSError as error:
            _log.debug("a connection from %s was lost: %s", address[0], error)
            connection.close()
        except BaseException:
            connection.close()
            raise

    async def _speaks_http2(self, connection: socket.socket) -> bool | None:
        """None: it was closed before it said anything."""
        await _readable(connection)
        while True:
            try:
                word = connection.recv(len(_HTTP2), socket.MSG_PEEK)
            except BlockingIOError:
                await _readable(connection)
                continue
            if not word:
                return None
            if len(word) == len(_HTTP2) or not _HTTP2.startswith(word):
                return word == _HTTP2
            # What is there stays readable, so there is nothing to wait for but time.
            await asyncio.sleep(self._limits.look_again)

    def _splice(self, connection: socket.socket, address: tuple[str, int]) -> None:
        name = str(next(self._numbers))
        behind = _connected(self.grpc_socket, self.grpc_socket.with_name(name))
        self._peers[name] = _as_peer(address)
        self._splices[name] = Splice(connection, behind, self._buffer, lambda: self._forget(name))
        self._splices[name].start()
        self.on_client(self._peers[name], True)

    def _forget(self, name: str) -> None:
        self.on_client(self._peers[name], False)
        del self._splices[name], self._peers[name]


def _prepare(connection: socket.socket, unread: float) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if sys.platform == "linux":
        # Whoever reads no more would stay for ever: its computer still answers for it.
        milliseconds = round(unread * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection.fileno())


_Place = tuple[int, tuple[Any, ...]]
"""A family of addresses, and one of them."""


async def _places(host: str, port: int) -> list[_Place]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "this is no name of a computer"
        raise CannotListen(
            f'cannot listen on {host}:{port}: "{host}" is no address of this computer '
            f"({why}); check network.bind_address"
        ) from error
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _place_of(listener: socket.socket) -> _Place:
    return listener.family, listener.getsockname()


def _listening(places: list[_Place], attempts: int = 5) -> list[socket.socket]:
    """One socket for each place, all on the same port; those that this computer lacks are left out.

    A port that the system chose for the first may be taken on the others: then it chooses again.
    """
    listeners: list[socket.socket] = []
    failures: list[OSError] = []
    for family, (host, port, *rest) in places:
        port = port or (listeners[0].getsockname()[1] if listeners else 0)
        try:
            listeners.append(_listener(family, (host, port, *rest)))
        except OSError as error:
            failures.append(error)
    taken = [error for error in failures if error.errno == errno.EADDRINUSE]
    if listeners and not taken:
        return listeners
    for listener in listeners:
        listener.close()
    if taken and attempts > 1 and not any(port for _, (_, port, *_) in places):
        return _listening(places, attempts - 1)
    raise (taken or failures)[0]


def _listener(family: int, address: tuple[Any, ...]) -> socket.socket:
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


def _advice(error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return "another program listens there; stop it, or set network.bind_address"
        case errno.EACCES:
            return "this user may not; use a port above 1023, or set network.bind_address"
        case errno.EADDRNOTAVAIL:
            return "this computer has no such address; check network.bind_address"
        case _:
            return f"{error.strerror}; check network.bind_address"


def _connected(path: Path, own_name: Path) -> socket.socket:
    """A connection to the gRPC listener, whose own end has a name there."""
    behind = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        behind.setblocking(False)
        behind.bind(str(own_name))
        # The name stays the connection's; the file has done its duty.
        own_name.unlink()
        behind.connect(str(path))
    except OSError:
        behind.close()
        raise
    return behind


def _as_peer(address: tuple[str, int]) -> str:
    """As gRPC writes an address."""
    host, port = address[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
