"""The notify protocol of systemd: tell the service manager that the server is ready, alive or
stopping.

If the event loop hangs, the messages of the watchdog stop as well, and systemd restarts the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from cogwork.core.clock import Clock

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PROCESS_VARIABLE = "WATCHDOG_PID"

_RETRY = 0.5
"""Seconds until a message is sent again that the service manager had no space for."""

_log = logging.getLogger("rdk")


@dataclass(frozen=True, slots=True)
class NotifySettings:
    address: str
    """The socket of the service manager; it starts with a null character if it is abstract."""
    watchdog_interval: float | None = None
    """Seconds between two signs of life; None if the service manager does not expect them."""


def read_notify_settings(environment: Mapping[str, str], process_id: int) -> NotifySettings | None:
    """Return what systemd expects of the process; None if it expects nothing."""
    address = environment.get(SOCKET_VARIABLE, "")
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    elif not address.startswith("/"):
        return None
    return NotifySettings(address, _read_watchdog_interval(environment, process_id))


def _read_watchdog_interval(environment: Mapping[str, str], process_id: int) -> float | None:
    if environment.get(WATCHDOG_PROCESS_VARIABLE, str(process_id)) != str(process_id):
        return None
    text = environment.get(WATCHDOG_VARIABLE, "")
    if not (text.isascii() and text.isdecimal()) or int(text) == 0:
        return None
    # systemd recommends half of the time, so that one late message does no harm.
    return int(text) / 1e6 / 2


class SystemdNotifier:
    """Reports the state of the server. Without settings, it does nothing."""

    def __init__(self, settings: NotifySettings | None, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Report that the server is ready, and from now on that it is alive."""
        if self._settings is not None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._report(self._settings), name="systemd")

    def report_stop(self, *, restarts: bool) -> None:
        """Report that the server stops.

        `restarts`: the same process starts again. systemd would end a process that is stopping, so
        it learns of a reload instead, which ends when the server is ready again.
        """
        if self._settings is not None:
            text = f"RELOADING=1\n{self._format_time()}" if restarts else "STOPPING=1"
            self._send(self._settings, text)

    async def aclose(self) -> None:
        """Stop reporting. Until then, a server that closes slowly counts as alive."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _report(self, settings: NotifySettings) -> None:
        await self._deliver(settings, "READY=1")
        while settings.watchdog_interval is not None:
            await self._clock.sleep(settings.watchdog_interval)
            await self._deliver(settings, "WATCHDOG=1")

    async def _deliver(self, settings: NotifySettings, text: str) -> None:
        while not self._send(settings, text):
            await self._clock.sleep(_RETRY)

    def _send(self, settings: NotifySettings, text: str) -> bool:
        """Return False if the service manager has no space for the message at the moment."""
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        try:
            with socket.socket(socket.AF_UNIX, kind) as ours:
                ours.sendto(text.encode(), settings.address)
        except BlockingIOError:
            return False
        except OSError as error:
            _log.warning("cannot tell systemd %s: %s", text.partition("\n")[0], error.strerror)
        return True

    def _format_time(self) -> str:
        return f"MONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}"
