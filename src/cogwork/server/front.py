"""The public port in front of the servers, in a process of its own or in this one."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from cogwork.core.backoff import Backoff
from cogwork.front.control_channel import ControlChannel, Message, control_pair
from cogwork.front.public_listener import ListenerLimits, OnClient, PublicListener
from cogwork.front.relay import GrpcRelay, Relay

_BACKOFF = Backoff(0.05, 5.0)
_RANDOM = random.Random()  # noqa: S311 - it only spreads attempts
_STOP_TIMEOUT = 2.0
"""Seconds for the front process to stop listening, or to exit."""

_log = logging.getLogger("rdk.networking")


@dataclass(frozen=True, slots=True)
class ServerSockets:
    """Paths of the private sockets that connections are relayed to."""

    grpc: Path
    http: Path


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

    async def aclose(self) -> None:
        await self.listener.aclose()


class FrontProcess:
    """Runs the front process, and starts another when it ends.

    Meanwhile, new clients wait in the backlog of the listening sockets, which stay open here.
    """

    def __init__(self, on_client: OnClient) -> None:
        self._on_client = on_client
        self._listeners: list[socket.socket] = []
        self._sockets: ServerSockets | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlChannel | None = None
        self._generation = 0
        """Counts the changes of the listeners."""
        self._confirmed: asyncio.Future[None] | None = None
        """Done when the front process has closed the previous listeners."""
        self._failures = 0
        """Failures in a row."""
        self._restart_timer: asyncio.TimerHandle | None = None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def use_sockets(self, sockets: ServerSockets) -> None:
        self._sockets = sockets
        self._send()

    async def serve(self, listeners: Sequence[socket.socket]) -> None:
        self._close_listeners()
        self._listeners = [each.dup() for each in listeners]
        if self._control is None:
            if self._restart_timer is None:
                self._start()
            return
        self._send_listeners()
        self._confirmed = asyncio.get_running_loop().create_future()
        await asyncio.wait({self._confirmed}, timeout=_STOP_TIMEOUT)

    async def aclose(self) -> None:
        self._close_listeners()
        if self._restart_timer is not None:
            self._restart_timer.cancel()
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            await asyncio.to_thread(_end_process, self._process)
            self._process = None

    def _start(self) -> None:
        self._restart_timer = None
        ours, theirs = control_pair()
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 - this very program
                    [sys.executable, "-m", "cogwork.front.main", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except OSError as error:
            ours.close()
            self._restart(f"cannot start the front process: {error.strerror}")
            return
        self._control = ControlChannel(ours, self._on_message, self._on_end)
        self._send_listeners()

    def _send_listeners(self) -> None:
        self._generation += 1
        self._send(self._generation, self._listeners)

    def _send(self, generation: int | None = None, listeners: Sequence[socket.socket] = ()) -> None:
        if self._control is not None and self._sockets is not None:
            paths = {"grpc": str(self._sockets.grpc), "http": str(self._sockets.http)}
            self._control.send({**paths, "generation": generation}, listeners)

    def _on_message(self, message: Message, _: list[socket.socket]) -> None:
        self._failures = 0
        match message:
            case {"client": peer, "connected": connected}:
                self._on_client(peer, connected)
            case {"log": name, "level": level, "text": text}:
                logging.getLogger(name).log(level, "%s", text)
            case {"generation": generation}:
                if generation == self._generation:
                    self._confirm()
            case _:
                pass

    def _on_end(self) -> None:
        self._control = None
        self._confirm()
        assert self._process is not None
        self._process.kill()  # in case that it only closed the channel
        code = self._process.wait()
        self._restart(f"the front process ended ({code}) and its clients are disconnected")

    def _confirm(self) -> None:
        if self._confirmed is not None and not self._confirmed.done():
            self._confirmed.set_result(None)

    def _restart(self, reason: str) -> None:
        self._failures += 1
        delay = _BACKOFF.delay(self._failures, _RANDOM)
        _log.error("%s; starting another in %.1fs", reason, delay)
        self._restart_timer = asyncio.get_running_loop().call_later(delay, self._start)

    def _close_listeners(self) -> None:
        for each in self._listeners:
            each.close()
        self._listeners = []


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Wait for the process to end by itself, as its control channel is closed."""
    try:
        process.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
