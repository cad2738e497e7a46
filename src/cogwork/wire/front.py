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
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.wire.splice import CHUNK, Splice

_HTTP2 = b"PRI"
"""How an HTTP/2 connection begins, and no HTTP/1.1 method does."""

_log = logging.getLogger("rdk.networking")


class CannotListen(CogworkError):
    """The address cannot be listened on; the message says why and what to do."""


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


class Front:
    def __init__(self, grpc_socket: Path, http: Http, limits: FrontLimits | None = None) -> None:
        self._grpc_socket = grpc_socket
        self._http = http
        self._limits = limits or FrontLimits()
        self._listeners: list[socket.socket] = []
        self._undecided: dict[socket.socket, asyncio.Task[None]] = {}
        self._splices: dict[str, Splice] = {}
        self._peers: dict[str, str] = {}
        self._buffer = memoryview(bytearray(CHUNK))
        self._numbers = itertools.count(1)
        self._refused = 0

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [listener.getsockname()[:2] for listener in self._listeners]

    @property
    def connections(self) -> int:
        return len(self._undecided) + len(self._splices) + self._http.connections

    def peer(self, name: str) -> str:
        """Who is behind a connection of the gRPC listener, given the name it sees."""
        return self._peers.get(name.rpartition("/")[2], name)

    async def listen(self, host: str, port: int) -> None:
        """Listen there and no longer elsewhere; connections that are open stay."""
        fresh = await _listening(host, port)
        self.stop_listening()
        self._listeners = fresh
        for listener in fresh:
            asyncio.get_running_loop().add_reader(listener.fileno(), self._accept, listener)

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
        behind = _connected(self._grpc_socket, self._grpc_socket.with_name(name))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._peers[name] = _as_peer(address)
        self._splices[name] = Splice(connection, behind, self._buffer, lambda: self._forget(name))
        self._splices[name].start()

    def _forget(self, name: str) -> None:
        del self._splices[name], self._peers[name]


async def _readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection.fileno(), ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(connection.fileno())


async def _listening(host: str, port: int) -> list[socket.socket]:
    """One socket for each address of the host, all on the same port."""
    shown = f"{host or '*'}:{port}"
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise CannotListen(
            f'cannot listen on {shown}: "{host}" is no address of this computer '
            f"({error.strerror}); check network.bind_address"
        ) from error
    listeners: list[socket.socket] = []
    failures: list[OSError] = []
    for family, _, _, _, address in dict.fromkeys(found):
        # The port that the system chose for the first is everybody's.
        port = port or (listeners[0].getsockname()[1] if listeners else 0)
        try:
            listeners.append(_listener(family, (address[0], port)))
        except OSError as error:
            failures.append(error)
    if not listeners or any(error.errno == errno.EADDRINUSE for error in failures):
        for listener in listeners:
            listener.close()
        raise CannotListen(f"cannot listen on {shown}: {_advice(failures[0])}")
    return listeners


def _listener(family: int, address: tuple[str | int, int]) -> socket.socket:
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
