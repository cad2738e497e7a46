"""The front process: it accepts the clients of the public port and relays their bytes.

It is a process of its own, so that moving bytes does not take time from the server's event loop.
It imports little, to stay small, and knows nothing of the calls. The server opens the listening
sockets and hands them over, so a new front process takes over the clients that wait in their
backlog. The process ends when its control channel does, at the latest with the server.
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
from pathlib import Path

from cogwork.front.control_channel import HEARTBEAT_INTERVAL, ControlChannel, Message
from cogwork.front.public_listener import PublicListener
from cogwork.front.relay import GrpcRelay, Relay


def main() -> None:
    # The server decides when this process ends; systemd sends signals to both.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[-1]))
    gc.freeze()
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(_serve(control))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop if it is installed: a flood of new connections takes half the time."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(connection: socket.socket) -> None:
    ended = asyncio.Event()
    grpc, http = GrpcRelay(Path()), Relay(Path())
    listener = PublicListener(grpc, http)

    def on_message(message: Message, sockets: list[socket.socket]) -> None:
        grpc.target, http.target = Path(message["grpc"]), Path(message["http"])
        certificate = message["certificate"]
        listener.use_certificate(Path(certificate) if certificate is not None else None)
        if message["generation"] is not None:
            listener.serve(sockets)
            control.send({"generation": message["generation"]})

    control = ControlChannel(connection, on_message, ended.set)
    listener.on_client = lambda peer, connected: control.send(
        {"client": peer, "connected": connected}
    )
    handler = _LogForwarder(control)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.INFO)
    while not ended.is_set():
        control.send({"alive": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_INTERVAL):
                await ended.wait()
    logging.getLogger().removeHandler(handler)
    await listener.aclose()


class _LogForwarder(logging.Handler):
    """Sends log records of level INFO and above to the server, which applies its rules to them."""

    def __init__(self, control: ControlChannel) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        self._control.send(
            {"log": record.name, "level": record.levelno, "text": self.format(record)}
        )


if __name__ == "__main__":
    main()
