"""The notify protocol of systemd: tell the service manager that the server is ready, alive or
stopping.

If the event loop hangs, the messages of the watchdog stop as well, and systemd restarts the server.
"""

from __future__ import annotations

import asyncio
import contextlib

from cogwork.core.clock import Clock
from cogwork.systemd.notify_socket import NotifySettings

_RETRY = 0.5
"""Seconds until a message is sent again that the service manager had no space for."""


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
            self._settings.send(text)

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
        while not settings.send(text):
            await self._clock.sleep(_RETRY)

    def _format_time(self) -> str:
        return f"MONOTONIC_USEC={int(self._clock.monotonic() * 1e6)}"
