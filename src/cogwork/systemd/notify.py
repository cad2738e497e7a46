"""The notify protocol of systemd: report that the server is ready, alive or stopping.

If the event loop hangs, the watchdog messages stop as well, and systemd restarts the server.
"""

from __future__ import annotations

import asyncio
import contextlib

from cogwork.core.clock import Clock
from cogwork.systemd.notify_socket import NotifySettings

_RETRY = 0.5
"""Seconds to wait before sending a message again, if the service manager had no space for it."""


class SystemdNotifier:
    """Reports the state of the server to systemd. Does nothing if the settings are None."""

    def __init__(self, settings: NotifySettings | None, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Report that the server is ready, and send the watchdog messages from now on."""
        if self._settings is not None:
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._report(self._settings), name="systemd")

    def report_stop(self, *, restarts: bool) -> None:
        """Report that the server stops.

        `restarts` is True if the same process starts again. It is then reported as a reload that
        lasts until the server is ready, because systemd would end a process that is stopping.
        """
        if self._settings is not None:
            text = f"RELOADING=1\n{self._format_time()}" if restarts else "STOPPING=1"
            self._settings.send(text)

    async def aclose(self) -> None:
        """Stop sending watchdog messages. Call this after closing everything else, so that a
        server that closes slowly counts as alive."""
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
