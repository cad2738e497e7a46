"""Shutdown of the server: on a signal, at the request of a client, or after an internal failure."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import time
from collections.abc import Callable

from cogwork.core.watchdog import run_with_timeout
from cogwork.serving.process import STDERR

SHUTDOWN_TIMEOUT = 60.0
"""Timeout of the shutdown in seconds, after which the process is forced to exit."""
SIGNAL_DEBOUNCE = 0.5
"""Seconds in which repeated signals count as one. Ctrl-C reaches every process of a terminal, and a
supervisor may forward it again."""
EXIT_TIMEOUT = 3.0
"""Maximum seconds from the end of the shutdown to the exit of the process, because threads of
drivers may hang."""

_log = logging.getLogger("rdk")


class Shutdown:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.requested: asyncio.Future[str] = self._loop.create_future()
        """Done when a stop is requested; the result is the reason."""
        self.failed = False
        self.wants_restart = False
        self._first_signal_at: float | None = None
        """Monotonic time of the first signal; None before it."""
        self._forced_exit_hooks: list[Callable[[], None]] = []

    def install_signal_handlers(self) -> None:
        """Install signal handlers that work even if the event loop is blocked."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def on_forced_exit(self, act: Callable[[], None]) -> None:
        """Register a callback that runs even if the process is forced to exit.

        The callback must not block.
        """
        self._forced_exit_hooks.append(act)

    def request(self, reason: str) -> None:
        if not self.requested.done():
            self.requested.set_result(reason)
            _exit_after(SHUTDOWN_TIMEOUT)

    def restart(self, reason: str) -> None:
        """Shut down, and start again afterwards."""
        self.wants_restart = True
        self.request(reason)

    def fail(self, reason: str) -> None:
        self.failed = True
        self.request(reason)

    def limit_exit_time(self) -> None:
        """Force an exit after EXIT_TIMEOUT: Python itself would wait forever for every thread."""
        _exit_after(EXIT_TIMEOUT)

    def _on_signal(self, number: int, _: object) -> None:
        name, now = signal.Signals(number).name, time.monotonic()
        if self._first_signal_at is None:
            self._first_signal_at = now
            if not self.requested.done():
                _exit_after(SHUTDOWN_TIMEOUT)
                self._loop.call_soon_threadsafe(self.request, name)
        elif now - self._first_signal_at > SIGNAL_DEBOUNCE:
            _log.error("received %s again; exiting immediately", name)
            self.force_exit()

    def force_exit(self) -> None:
        """Exit immediately. Can be called from any thread."""
        for act in self._forced_exit_hooks:
            with contextlib.suppress(Exception):
                act()
        # Limit the time, because a blocked thread may hold a lock of the logging module.
        run_with_timeout(EXIT_TIMEOUT, "last lines", logging.shutdown)
        os._exit(1)


def _exit_after(seconds: float) -> None:
    """After the timeout, dump all stacks and exit. This works even if the event loop is blocked,
    because the timer is implemented in C."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
