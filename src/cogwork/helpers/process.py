"""A child process of the server, with a control channel to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import subprocess
import sys
from collections.abc import Sequence

from cogwork.helpers.control_channel import (
    HEARTBEAT_INTERVAL,
    ControlChannel,
    Message,
    OnMessage,
    control_pair,
)

STOP_TIMEOUT = 2.0
"""Seconds that the process gets to exit."""
_MAX_MISSED_HEARTBEATS = 5

_log = logging.getLogger("rdk.networking")


class ChildProcess:
    def __init__(self, name: str, module: str, on_message: OnMessage) -> None:
        """`name` is the name in log messages. `module` is run as the main program of the process.

        `on_message` takes all messages except log records and heartbeats.
        """
        self.name = name
        self._module = module
        self._on_message = on_message
        self._process: subprocess.Popen[bytes] | None = None
        self._control: ControlChannel | None = None
        self._was_heard = False
        """Whether the process has sent a message since the last check."""

    @property
    def is_running(self) -> bool:
        return self._control is not None

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self, ended: asyncio.Event) -> None:
        """Start the process. `ended` is set when the process has closed its control channel.

        Raise OSError if the process cannot start. Call `wait` afterwards.
        """
        ours, theirs = control_pair()
        with theirs:
            try:
                self._process = _start_process(self._module, theirs)
            except OSError:
                ours.close()
                raise
        self._control = ControlChannel(ours, self._dispatch, ended.set)

    async def wait(self, ended: asyncio.Event) -> None:
        """Wait until the process has ended. If this call is cancelled, end the process."""
        process, control = self._process, self._control
        assert process is not None
        assert control is not None
        try:
            await self._wait_for_end(ended, process)
        finally:
            self._control = self._process = None
            control.close()
            await asyncio.to_thread(_end_process, process)

    def send(self, message: Message, sockets: Sequence[socket.socket] = ()) -> None:
        """Send a message if the process is running. The sockets are duplicated.

        Raise OSError if a socket cannot be duplicated.
        """
        if self._control is not None:
            self._control.send(message, sockets)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def _dispatch(self, message: Message, sockets: list[socket.socket]) -> None:
        self._was_heard = True
        match message:
            case {"alive": True}:
                pass
            case {"log": name, "level": level, "text": text}:
                logging.getLogger(name).log(level, "%s", text)
            case _:
                self._on_message(message, sockets)

    async def _wait_for_end(self, ended: asyncio.Event, process: subprocess.Popen[bytes]) -> None:
        """Wait for the process to end, and kill it if it has sent no heartbeat for too long.

        Count the intervals without a message instead of measuring the time since the last one,
        because messages queue up unread while this event loop is blocked.
        """
        missed = 0
        while not ended.is_set():
            self._was_heard = False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT_INTERVAL):
                    await ended.wait()
            missed = 0 if self._was_heard else missed + 1
            if missed > _MAX_MISSED_HEARTBEATS:
                _log.error("the %s process does not respond; killing it", self.name)
                process.kill()


def _start_process(module: str, control: socket.socket) -> subprocess.Popen[bytes]:
    # With -P, files in the working directory cannot replace modules. The packed executable never
    # imports from the working directory, and does not accept -P.
    safe_path = [] if getattr(sys, "frozen", False) else ["-P"]
    return subprocess.Popen(  # noqa: S603 - this very program
        [sys.executable, *safe_path, "-m", module, str(control.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def _end_process(process: subprocess.Popen[bytes]) -> None:
    """Wait until the process ends, which it does by itself because its control channel is closed.
    Kill it after a timeout."""
    try:
        process.wait(STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
