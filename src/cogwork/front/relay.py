"""Relays accepted connections to the private socket of a server.

Each connection gets a name that tells the server who the client is: see `peer_name`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from cogwork.core.limits.byte_budget import upload_budget
from cogwork.core.memory import total_memory
from cogwork.front.burst import Bursts
from cogwork.front.connections import ConnectionState
from cogwork.front.http1_monitor import Http1Monitor
from cogwork.front.http2_monitor import Http2Monitor, MonitorLimits
from cogwork.front.peer_name import socket_name
from cogwork.front.socket_relay import CHUNK_SIZE, Backlog, SocketRelay, StreamSocket
from cogwork.front.uploads import ConnectionUploads, Uploads
from cogwork.net.peer import Peer, host_of

REQUEST_TIMEOUT = 30.0
"""Seconds after which a connection is closed if one of its requests has no complete message and
makes no progress. This is checked twice in that time."""

_ASK_INTERVAL = 0.005
"""Seconds from a cancellation until the server is queried about cancelled requests."""
_ANSWER_TIMEOUT = 1.0
"""Seconds without an answer after which the query is repeated."""

_log = logging.getLogger("rdk.networking")


class Monitor(Protocol):
    """Observes the bytes of a connection."""

    @property
    def is_busy(self) -> bool: ...

    @property
    def request_count(self) -> int: ...

    @property
    def last_active(self) -> float: ...

    @property
    def waiting_since(self) -> float | None:
        """The time since which a request has waited for its message; None if no request waits."""

    @property
    def held_size(self) -> int: ...

    def feed_client(self, data: memoryview) -> memoryview: ...

    def feed_server(self, data: memoryview) -> memoryview: ...


class Relay:
    """Relays to an HTTP/1.1 server; `GrpcRelay` relays to a gRPC server."""

    def __init__(self, target: Path) -> None:
        self.target = target
        """Path of the server's socket, to which new connections are relayed."""
        self._connections: dict[int, RelayedConnection] = {}
        self._buffer = memoryview(bytearray(CHUNK_SIZE))
        self._backlog = Backlog()
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._connections)

    def start(
        self,
        connection: StreamSocket,
        peer: Peer,
        on_close: Callable[[], None] = lambda: None,
        first: bytes = b"",
    ) -> RelayedConnection:
        """Take ownership of the connection. Raise OSError if the server cannot be reached.

        `first` has the bytes that were already received from the client.
        """
        number = next(self._numbers)
        private = _connect(self.target, self.target.with_name(socket_name(number, peer)))
        monitor = self._make_monitor(number, peer.address)

        def forget() -> None:
            self._connections.pop(number, None)
            relayed.on_closed()
            self._forget(number)
            on_close()

        socket_relay = SocketRelay(
            connection, private, self._buffer, monitor, forget, self._backlog
        )
        relayed = RelayedConnection(peer.address, socket_relay, monitor)
        self._connections[number] = relayed
        socket_relay.start(first)
        return relayed

    def close(self) -> None:
        for relayed in tuple(self._connections.values()):
            relayed.close()

    def _make_monitor(self, number: int, client: str) -> Monitor:
        """Return the monitor for the bytes of a connection."""
        del number, client
        return Http1Monitor(time.monotonic)

    def _forget(self, number: int) -> None:
        """Delete the state of a connection that was closed."""


class GrpcRelay(Relay):
    """Relays to a gRPC server."""

    def __init__(self, target: Path, limits: MonitorLimits | None = None) -> None:
        super().__init__(target)
        self.ask: Callable[[], None] = lambda: None
        """Asks the server how many cancelled requests of each connection it still works on. The
        answer is passed to `settle`."""
        self._limits = limits
        self._bursts = Bursts(time.monotonic, self._on_cancel)
        self._uploads = Uploads(upload_budget(total_memory()))
        self._open_uploads: dict[int, ConnectionUploads] = {}
        self._answer_deadline = 0.0

    def settle(self, working: Mapping[int, int]) -> None:
        """Apply the server's answer: for each connection number, how many cancelled requests the
        server still works on."""
        self._answer_deadline = 0.0
        self._bursts.settle(working)
        for each in tuple(self._connections.values()):
            each.retry()
        if self._bursts.has_cancelled:
            self._on_cancel()

    def _make_monitor(self, number: int, client: str) -> Monitor:
        def on_grant() -> None:
            if number in self._connections:
                self._connections[number].ask_monitor()

        uploads = self._open_uploads[number] = self._uploads.open(host_of(client), on_grant)
        return Http2Monitor(time.monotonic, self._limits, self._bursts.open(number), uploads)

    def _forget(self, number: int) -> None:
        self._bursts.close(number)
        self._open_uploads.pop(number).close()

    def _on_cancel(self) -> None:
        now = time.monotonic()
        if now >= self._answer_deadline:
            self._answer_deadline = now + _ANSWER_TIMEOUT
            asyncio.get_running_loop().call_later(_ASK_INTERVAL, self._ask)

    def _ask(self) -> None:
        self._bursts.ask()
        self.ask()


class RelayedConnection:
    """One relayed connection, until it is closed."""

    def __init__(self, peer: str, socket_relay: SocketRelay, monitor: Monitor) -> None:
        self.peer = peer
        self._socket_relay = socket_relay
        self._monitor = monitor
        self._timeout_timer = self._schedule_check()

    @property
    def state(self) -> ConnectionState:
        if self._monitor.is_busy:
            return ConnectionState.BUSY
        return ConnectionState.IDLE if self._monitor.request_count else ConnectionState.UNUSED

    @property
    def last_active(self) -> float:
        return self._monitor.last_active

    def retry(self) -> None:
        """Try again to forward the bytes that were held back."""
        self._socket_relay.retry()

    def ask_monitor(self) -> None:
        """Send the client the bytes that the monitor adds, such as granted window updates."""
        self._socket_relay.ask_monitor()

    def close(self) -> None:
        self._socket_relay.close()

    def on_closed(self) -> None:
        """Stop the timer, and log the protocol violation if there was one."""
        self._timeout_timer.cancel()
        if self._socket_relay.violation is not None:
            _log.warning("closed a connection from %s: %s", self.peer, self._socket_relay.violation)

    def _check_timeout(self) -> None:
        since = self._monitor.waiting_since
        if since is not None and time.monotonic() - since >= REQUEST_TIMEOUT:
            self._socket_relay.close(f"a request sent no message for {REQUEST_TIMEOUT:g}s")
        else:
            self._timeout_timer = self._schedule_check()
            self._socket_relay.check()

    def _schedule_check(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(REQUEST_TIMEOUT / 2, self._check_timeout)


def _connect(path: Path, own_name: Path) -> socket.socket:
    private = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        private.setblocking(False)
        private.bind(str(own_name))
        # Delete the file at once. The socket keeps its name without the file.
        own_name.unlink()
        private.connect(str(path))
    except OSError:
        private.close()
        raise
    return private
