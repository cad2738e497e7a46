"""Relays accepted connections to a gRPC server's private socket, and remembers their peers.

The server sees only Unix sockets. The relay binds its own end of each to a unique name, so that
`peer` can map that name to the client behind a call.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import socket
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from cogwork.wire.connections import ConnectionState
from cogwork.wire.http2_monitor import Http2Monitor, MonitorLimits
from cogwork.wire.socket_relay import CHUNK_SIZE, SocketRelay

REQUEST_TIMEOUT = 30.0
"""Maximum seconds between the headers of a request and its message."""

_MAX_BURST = 64
"""Maximum unanswered requests in a burst, summed over all connections."""
_MIN_SHARE = 2
"""Minimum number of requests that a connection may send in a burst."""
_SHARE_TTL = 0.05
"""Seconds for which a computed share is reused."""

_log = logging.getLogger("rdk.networking")


class GrpcRelay:
    def __init__(self, grpc_socket: Path, limits: MonitorLimits | None = None) -> None:
        self.grpc_socket = grpc_socket
        """Path of the server's socket, to which new connections are relayed."""
        self._limits = limits
        self._connections: dict[str, RelayedConnection] = {}
        self._buffer = memoryview(bytearray(CHUNK_SIZE))
        self._numbers = itertools.count(1)
        self._share = _MAX_BURST
        self._share_computed_at = 0.0

    def __len__(self) -> int:
        return len(self._connections)

    def peer(self, name: str) -> str:
        """Return the client's address, given the peer name that the server sees."""
        relayed = self._connections.get(name.rpartition("/")[2])
        return relayed.peer if relayed is not None else unquote(name)

    def start(
        self, connection: socket.socket, peer: str, on_close: Callable[[], None] = lambda: None
    ) -> RelayedConnection:
        """Take ownership of the connection. Raise OSError if the server cannot be reached."""
        name = str(next(self._numbers))
        private = _connect(self.grpc_socket, self.grpc_socket.with_name(name))
        monitor = Http2Monitor(time.monotonic, self._limits, self._fair_share)

        def forget() -> None:
            relayed = self._connections.pop(name)
            relayed.on_closed()
            on_close()

        socket_relay = SocketRelay(connection, private, self._buffer, monitor, forget)
        relayed = self._connections[name] = RelayedConnection(peer, socket_relay, monitor)
        socket_relay.start()
        return relayed

    def _fair_share(self) -> int:
        """Return how many requests one connection may send in a burst.

        Without a limit, thousands of pending requests would delay the replies to every client.
        """
        now = time.monotonic()
        if now - self._share_computed_at >= _SHARE_TTL:
            self._share_computed_at = now
            bursting = sum(each.is_bursting for each in self._connections.values())
            self._share = max(_MIN_SHARE, _MAX_BURST // max(1, bursting))
        return self._share

    def close(self) -> None:
        for relayed in tuple(self._connections.values()):
            relayed.close()


class RelayedConnection:
    """One relayed connection, until it is closed."""

    def __init__(self, peer: str, socket_relay: SocketRelay, monitor: Http2Monitor) -> None:
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
    def is_bursting(self) -> bool:
        return self._monitor.is_bursting

    @property
    def last_active(self) -> float:
        return self._monitor.last_active

    def close(self) -> None:
        self._socket_relay.close()

    def on_closed(self) -> None:
        """Stop the timer, and log the violation if there was one."""
        self._timeout_timer.cancel()
        if self._socket_relay.violation is not None:
            _log.warning("closed a connection from %s: %s", self.peer, self._socket_relay.violation)

    def _check_timeout(self) -> None:
        since = self._monitor.waiting_since
        if since is not None and time.monotonic() - since >= REQUEST_TIMEOUT:
            self._socket_relay.close(f"a request sent no message for {REQUEST_TIMEOUT:g}s")
        else:
            self._timeout_timer = self._schedule_check()

    def _schedule_check(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(REQUEST_TIMEOUT / 2, self._check_timeout)


def _connect(path: Path, own_name: Path) -> socket.socket:
    private = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        private.setblocking(False)
        private.bind(str(own_name))
        # The socket keeps its name without the file.
        own_name.unlink()
        private.connect(str(path))
    except OSError:
        private.close()
        raise
    return private
