"""The public port in front of the servers, in a process of its own or in this one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from cogwork.core.backoff import Backoff
from cogwork.front.control_channel import (
    HEARTBEAT_INTERVAL,
    ControlChannel,
    Message,
    control_pair,
)
from cogwork.front.public_listener import ListenerLimits, OnClient, PublicListener
from cogwork.front.relay import GrpcRelay, Relay

_BACKOFF = Backoff(0.05, 5.0)
_RANDOM = random.Random()  # noqa: S311 - it only spreads attempts
_STOP_TIMEOUT = 2.0
"""Seconds for the front process to stop listening, or to exit."""
_MAX_MISSED_HEARTBEATS = 5
_STABLE_AFTER = 10.0
"""Seconds after which the end of a front process does not count as a repeated failure."""
_MAX_CLIENTS = 4096
"""Clients that are remembered, which are more than the front accepts."""

_log = logging.getLogger("rdk.networking")


@dataclass(frozen=True, slots=True)
class ServerSockets:
    """Paths of the private sockets that connections are relayed to, and of the certificate."""

    grpc: Path
    http: Path
    certificate: Path | None = None
    """A PEM file with the certificate chain and its key; None to serve plaintext."""


class Front(Protocol):
    """Accepts connections and relays them."""

    def use_sockets(self, sockets: ServerSockets) -> None:
        """Relay new connections to these servers."""

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        """Accept from these listeners instead of the current ones, which are closed.

        The caller closes its own. Open connections stay open.
        """

    async def aclose(self) -> None:
        """Close all connections."""


def make_front(mode: Literal["process", "in_process"], on_client: OnClient) -> Front:
    return FrontProcess(on_client) if mode == "process" else InProcessFront(on_client)


class InProcessFront:
    """Serves the public port on the event loop of the server, which takes less memory."""

    def __init__(self, on_client: OnClient, limits: ListenerLimits | None = None) -> None:
        self._grpc, self._http = GrpcRelay(Path()), Relay(Path())
        self.listener = PublicListener(self._grpc, self._http, limits)
        self.listener.on_client = on_client

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        self.listener.serve([each.dup() for each in listeners])

    def use_sockets(self, sockets: ServerSockets) -> None:
        self._grpc.target, self._http.target = sockets.grpc, sockets.http
        self.listener.use_certificate(sockets.certificate)

    async def aclose(self) -> None:
        await self.listener.aclose()


class FrontProcess:
    """Runs the front process, and starts another when it ends or hangs.

    Meanwhile, new clients wait in the backlog of the listening sockets, which stay open here.
    """

    def __init__(self, on_client: OnClient) -> None:
        self._on_client = on_client
        self._listeners: list[socket.socket] = []
        self._sockets: ServerSockets | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlChannel | None = None
        self._generation = 0
        """Counts the changes of the listeners."""
        self._confirmed: asyncio.Future[None] | None = None
        """Done when the front process has closed the previous listeners, or has ended."""
        self._was_heard = False
        """Whether the front process has sent a message since the last check."""
        self._clients: dict[str, None] = {}
        """Connected clients, oldest first."""

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def use_sockets(self, sockets: ServerSockets) -> None:
        self._sockets = sockets
        self._send()

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        self._close_listeners()
        self._listeners = [each.dup() for each in listeners]
        if self._supervisor is None and listeners:
            self._supervisor = asyncio.create_task(self._supervise())
        if self._control is None:
            return
        confirmed = self._confirmed = asyncio.get_running_loop().create_future()
        self._send_listeners()
        await asyncio.wait({confirmed}, timeout=_STOP_TIMEOUT)
        if not confirmed.done() and self._process is not None:
            # It must not keep the previous address in use. The next process gets the new listeners.
            self._process.kill()
            await asyncio.wait({confirmed}, timeout=_STOP_TIMEOUT)

    async def aclose(self) -> None:
        self._close_listeners()
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.gather(self._supervisor, return_exceptions=True)

    async def _supervise(self) -> None:
        failures = 0
        while True:
            start = time.monotonic()
            try:
                await self._run_process()
                reason = "the front process ended and its clients are disconnected"
            except OSError as error:
                reason = f"cannot start the front process: {error.strerror}"
            lived = time.monotonic() - start
            failures = failures + 1 if lived < _STABLE_AFTER else 1
            delay = _BACKOFF.delay(failures, _RANDOM)
            _log.error("%s; starting another in %.1fs", reason, delay)
            await asyncio.sleep(delay)

    async def _run_process(self) -> None:
        """Start the front process, and return when it has ended."""
        ended = asyncio.Event()
        ours, theirs = control_pair()
        with theirs:
            try:
                process = self._process = _start_process(theirs)
            except OSError:
                ours.close()
                raise
        control = self._control = ControlChannel(ours, self._on_message, ended.set)
        try:
            self._send_listeners()
            await self._wait_for_end(ended, process)
        finally:
            self._control = self._process = None
            control.close()
            await asyncio.to_thread(_end_process, process)
            self._confirm()
            while self._clients:
                self._disconnect(next(iter(self._clients)))

    async def _wait_for_end(self, ended: asyncio.Event, process: subprocess.Popen[bytes]) -> None:
        """Wait for the process to end, and kill it if it has sent no heartbeat for too long.

        Missed heartbeats are counted rather than timed: if this loop was blocked, they wait unread.
        """
        missed = 0
        while not ended.is_set():
            self._was_heard = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_INTERVAL):
                    await ended.wait()
            missed = 0 if self._was_heard else missed + 1
            if missed > _MAX_MISSED_HEARTBEATS:
                _log.error("the front process does not respond; ending it")
                process.kill()

    def _send_listeners(self) -> None:
        self._generation += 1
        self._send(self._generation, self._listeners)

    def _send(self, generation: int | None = None, listeners: Sequence[socket.socket] = ()) -> None:
        if self._control is None or self._sockets is None:
            return
        certificate = self._sockets.certificate
        message = {
            "grpc": str(self._sockets.grpc),
            "http": str(self._sockets.http),
            "certificate": str(certificate) if certificate is not None else None,
            "generation": generation,
        }
        try:
            self._control.send(message, listeners)
        except OSError as error:
            _log.error("cannot reach the front process: %s; restarting it", error.strerror)
            assert self._process is not None
            self._process.kill()

    def _on_message(self, message: Message, _: list[socket.socket]) -> None:
        self._was_heard = True
        match message:
            case {"client": peer, "connected": True}:
                self._clients[peer] = None
                self._on_client(peer, True)
                if len(self._clients) > _MAX_CLIENTS:  # a message about the oldest was dropped
                    self._disconnect(next(iter(self._clients)))
            case {"client": peer} if peer in self._clients:
                self._disconnect(peer)
            case {"log": name, "level": level, "text": text}:
                logging.getLogger(name).log(level, "%s", text)
            case {"generation": self._generation}:
                self._confirm()

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


def _start_process(control: socket.socket) -> subprocess.Popen[bytes]:
    # With -P, files in the working directory cannot replace modules. The packed executable never
    # imports from there, and does not accept the option.
    safe_path = [] if getattr(sys, "frozen", False) else ["-P"]
    return subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, *safe_path, "-m", "cogwork.front.main", str(control.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process to end by itself, as its control channel is closed."""
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
