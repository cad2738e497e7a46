"""Who may ask the server to stop: the system by a signal, a client, or a fault of its own."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import signal
import time
from collections.abc import Callable

from cogwork.server.process import STDERR

LONGEST = 60.0
"""Seconds that stopping may take before the process is ended as it is."""
ONE_REQUEST = 0.5
"""Seconds in which two signals are one: Ctrl-C reaches all who share a terminal, and programs that
run others pass it on to them once more."""
LAST = 3.0
"""Seconds that what is left may take after that, such as threads of drivers that hang."""

_log = logging.getLogger("rdk")


class Stop:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.asked: asyncio.Future[str] = self._loop.create_future()
        """The reason, once somebody has asked."""
        self.failed = False
        self._signalled: float | None = None
        """When the first signal came."""
        self._even_then: list[Callable[[], None]] = []

    def on_signals(self) -> None:
        """Not by way of the loop, which may be stuck just when somebody wants an end of it."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def even_at_once(self, act: Callable[[], None]) -> None:
        """Done also when somebody insists, and the rest is not. It must not wait for anything."""
        self._even_then.append(act)

    def ask(self, reason: str) -> None:
        if not self.asked.done():
            self.asked.set_result(reason)
            _end_after(LONGEST)

    def fail(self, reason: str) -> None:
        self.failed = True
        self.ask(reason)

    def over(self) -> None:
        """Python itself would wait for every thread, for ever."""
        _end_after(LAST)

    def _on_signal(self, number: int, _: object) -> None:
        name, now = signal.Signals(number).name, time.monotonic()
        if self._signalled is None:
            self._signalled = now
            if not self.asked.done():
                _end_after(LONGEST)
                self._loop.call_soon_threadsafe(self.ask, name)
        elif now - self._signalled > ONE_REQUEST:
            self._exit_at_once(name)

    def _exit_at_once(self, name: str) -> None:
        _log.error("%s again: exiting at once", name)
        for act in self._even_then:
            with contextlib.suppress(Exception):
                act()
        logging.shutdown()
        os._exit(1)


def _end_after(seconds: float) -> None:
    """In C, so that it works even when the loop does not: shows what hangs, then exits."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=STDERR)
