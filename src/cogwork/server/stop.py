"""Who may ask the server to stop: the system by a signal, a client, or a fault of its own."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal

LONGEST = 60.0
"""Seconds that stopping may take before the process is ended as it is."""

_log = logging.getLogger("rdk")


class Stop:
    def __init__(self) -> None:
        self.asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The reason, once somebody has asked."""
        self.failed = False

    def on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled, number)

    def ask(self, reason: str) -> None:
        if not self.asked.done():
            self.asked.set_result(reason)
            # In C, so that it works even when the loop does not: shows what hangs, then exits.
            faulthandler.dump_traceback_later(LONGEST, exit=True)

    def fail(self, reason: str) -> None:
        self.failed = True
        self.ask(reason)

    def over(self) -> None:
        faulthandler.cancel_dump_traceback_later()

    def _signalled(self, number: signal.Signals) -> None:
        if self.asked.done():
            _log.error("%s again: exiting at once", number.name)
            os._exit(1)
        self.ask(number.name)
