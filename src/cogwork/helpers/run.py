"""The main function of a child process of the server.

The process ends when its control channel is closed, at the latest when the server ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from typing import Protocol

from cogwork.helpers.control_channel import HEARTBEAT_INTERVAL, ControlChannel, Message
from cogwork.helpers.log_forwarder import LogForwarder


class Worker(Protocol):
    """The work of a child process."""

    def on_message(self, message: Message, sockets: list[socket.socket]) -> None:
        """Handle a message of the server, and take ownership of the attached sockets."""

    async def aclose(self) -> None: ...


MakeWorker = Callable[[Callable[[Message], None]], Worker]
"""Creates the worker, given a function that sends a message to the server."""


def run(make_worker: MakeWorker) -> None:
    # Ignore signals: systemd sends them to both processes, but the server decides when this one
    # ends.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=int(sys.argv[-1]))
    gc.freeze()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(connection, make_worker))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop if it is installed. It handles a flood of new connections in half the time."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(connection: socket.socket, make_worker: MakeWorker) -> None:
    ended = asyncio.Event()
    control = ControlChannel(
        connection, lambda message, sockets: worker.on_message(message, sockets), ended.set
    )
    handler = LogForwarder(control)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    worker = make_worker(control.send)
    while not ended.is_set():
        control.send({"alive": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_INTERVAL):
                await ended.wait()
    logging.getLogger().removeHandler(handler)
    await worker.aclose()
