"""The public port, served by a separate process or in the process of the server."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.os_error_text import os_reason
from cogwork.front.connections import DEFAULT_LIMITS, ConnectionLimits
from cogwork.front.listener_limits import ListenerLimits
from cogwork.front.public_listener import PublicListener
from cogwork.front.relay import GrpcRelay, Relay
from cogwork.front.tls_socket import TlsSettings
from cogwork.helpers.control_channel import Message
from cogwork.helpers.process import STOP_TIMEOUT, ChildProcess
from cogwork.net.peer import OnClient

_RETRY = RetryPolicy(first=0.05, maximum=5.0)
_STABLE_AFTER = 10.0
"""If the front process has run for this number of seconds, the back-off before its restart is
reset."""
_REMEMBERED = 4
"""Maximum number of remembered clients, as a multiple of the maximum number of connections."""

_log = logging.getLogger("rdk.networking")


@dataclass(frozen=True, slots=True)
class ServerSockets:
    """Paths of the private sockets to which connections are relayed, and the TLS settings."""

    grpc: Path
    http: Path
    tls: TlsSettings | None = None
    """None to serve plaintext."""
    proxies: tuple[str, ...] = ()
    """Networks of trusted proxies, which may forward the address of their clients."""


class Front(Protocol):
    """A front: it accepts connections, and relays them to the server."""

    def use_sockets(self, sockets: ServerSockets) -> None:
        """Relay new connections to these servers."""

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Accept from these listeners, and close the previous ones. Open connections stay open.

        The front copies the listeners; the caller closes the originals.
        """

    async def aclose(self) -> None:
        """Close all connections."""


CountCancelled = Callable[[], Mapping[int, int]]
"""Returns how many cancelled requests the server still works on, by connection number."""


def make_front(
    mode: Literal["process", "in_process"],
    on_client: OnClient,
    count_cancelled: CountCancelled,
    connections: ConnectionLimits,
) -> Front:
    if mode == "process":
        return FrontProcess(on_client, count_cancelled, connections)
    return InProcessFront(on_client, count_cancelled, ListenerLimits(connections))


class InProcessFront:
    """A front on the event loop of the server, which uses less memory than a process."""

    def __init__(
        self,
        on_client: OnClient,
        count_cancelled: CountCancelled = dict,
        limits: ListenerLimits | None = None,
    ) -> None:
        self._grpc, self._http = GrpcRelay(Path()), Relay(Path())
        self._grpc.ask = lambda: self._grpc.settle(count_cancelled())
        self.listener = PublicListener(self._grpc, self._http, limits, on_client)

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        self.listener.serve([each.dup() for each in listeners])

    def use_sockets(self, sockets: ServerSockets) -> None:
        self._grpc.target, self._http.target = sockets.grpc, sockets.http
        self.listener.use_tls(sockets.tls)
        self.listener.trust_proxies(sockets.proxies)

    async def aclose(self) -> None:
        await self.listener.aclose()


class FrontProcess:
    """A front in a process, which is restarted when it ends or hangs.

    During a restart, new clients wait in the backlog of the listening sockets, which the server
    keeps open.
    """

    def __init__(
        self,
        on_client: OnClient,
        count_cancelled: CountCancelled = dict,
        connections: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        self._on_client = on_client
        self._count_cancelled = count_cancelled
        self._connections = connections
        self._process = ChildProcess("front", "cogwork.front.main", self._on_message)
        self._listeners: list[socket.socket] = []
        self._sockets: ServerSockets | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._generation = 0
        """Number of times that the listeners were changed."""
        self._confirmed: asyncio.Future[None] | None = None
        """Done when the front process has closed the previous listeners or has ended."""
        self._clients: dict[str, None] = {}
        """Connected clients, oldest first."""

    @property
    def process_id(self) -> int | None:
        return self._process.process_id

    def use_sockets(self, sockets: ServerSockets) -> None:
        self._sockets = sockets
        self._send()

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        self._close_listeners()
        self._listeners = [each.dup() for each in listeners]
        if self._supervisor is None and listeners:
            self._supervisor = asyncio.create_task(self._supervise())
        if not self._process.is_running:
            return
        confirmed = self._confirmed = asyncio.get_running_loop().create_future()
        self._send_listeners()
        await asyncio.wait({confirmed}, timeout=STOP_TIMEOUT)
        if not confirmed.done():
            # Kill the process, which still uses the previous listeners. The next process gets the
            # new ones.
            self._process.kill()
            await asyncio.wait({confirmed}, timeout=STOP_TIMEOUT)

    async def aclose(self) -> None:
        self._close_listeners()
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)

    async def _supervise(self) -> None:
        backoff = Backoff(_RETRY)
        while True:
            start = time.monotonic()
            try:
                await self._run_process()
                reason = "the front process ended and its clients are disconnected"
            except OSError as error:
                reason = f"cannot start the front process: {os_reason(error)}"
            if time.monotonic() - start >= _STABLE_AFTER:
                backoff.reset()
            delay = backoff.next_delay()
            _log.error("%s; restarting the front process in %.1fs", reason, delay)
            await asyncio.sleep(delay)

    async def _run_process(self) -> None:
        """Start the front process, and wait until it has ended."""
        ended = asyncio.Event()
        self._process.start(ended)
        self._send_listeners()
        try:
            await self._process.wait(ended)
        finally:
            self._confirm()
            while self._clients:
                self._disconnect(next(iter(self._clients)))

    def _send_listeners(self) -> None:
        self._generation += 1
        self._send(self._generation, self._listeners)

    def _send(self, generation: int | None = None, listeners: Sequence[socket.socket] = ()) -> None:
        if self._sockets is None:
            return
        message = {
            "grpc": str(self._sockets.grpc),
            "http": str(self._sockets.http),
            "tls": _encode_tls_settings(self._sockets.tls),
            "proxies": self._sockets.proxies,
            "connections": [self._connections.total, self._connections.per_host],
            "generation": generation,
        }
        try:
            self._process.send(message, listeners)
        except OSError as error:
            _log.error("cannot reach the front process: %s; restarting it", os_reason(error))
            self._process.kill()

    def _on_message(self, message: Message, _: list[socket.socket]) -> None:
        match message:
            case {"client": peer, "connected": True}:
                self._clients[peer] = None
                self._on_client(peer, True)
                if len(self._clients) > _REMEMBERED * self._connections.total:
                    # There cannot be so many clients. The message that the oldest one disconnected
                    # must have been lost.
                    self._disconnect(next(iter(self._clients)))
            case {"client": peer} if peer in self._clients:
                self._disconnect(peer)
            case {"generation": self._generation}:
                self._confirm()
            case {"asks": True}:
                self._process.send({"working": self._count_cancelled()})

    def _disconnect(self, peer: str) -> None:
        del self._clients[peer]
        self._on_client(peer, False)

    def _confirm(self) -> None:
        if self._confirmed is not None and not self._confirmed.done():
            self._confirmed.set_result(None)

    def _close_listeners(self) -> None:
        for each in self._listeners:
            each.close()
        self._listeners = []


def _encode_tls_settings(settings: TlsSettings | None) -> Message | None:
    if settings is None:
        return None
    authority = settings.client_authority
    return {
        "certificate": str(settings.certificate),
        "client_authority": str(authority) if authority is not None else None,
        "client_names": settings.client_names,
    }
