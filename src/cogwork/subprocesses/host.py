"""Resources that all programs of a server share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from cogwork.core.clock import Clock
from cogwork.core.limits.loop_budget import LoopBudget
from cogwork.core.workers import run_in_thread
from cogwork.subprocesses import orphans
from cogwork.subprocesses.reaper import Reaper

T = TypeVar("T")

_THREADS = 2
_TIMEOUT = 1.0
"""Seconds to wait for a free thread. After that, the work runs in an additional thread, because the
other threads may be waiting for a disk that does not respond."""

_REAP_DELAYS = (0.005, 0.05)


class ProgramHost:
    def __init__(self, clock: Clock, reaper: Reaper | None = None) -> None:
        """Create the host. `reaper` ends the programs if the server is killed. The host closes the
        reaper."""
        self.clock = clock
        self.reaper = reaper
        self.output_budget = LoopBudget(clock)
        """Event loop time that reading the output of all programs may use."""
        self._threads = asyncio.Semaphore(_THREADS)
        self._is_reaping = False
        self._must_reap = False

    async def run_in_thread(
        self, name: str, limit: float, work: Callable[..., T], *arguments: Any
    ) -> T:
        """Run work that reads files. Raise TimeoutError after `limit` seconds.

        Only a few threads run at the same time. If a hundred programs ended at once, that many
        threads would block the event loop.
        """
        has_slot = await self._wait_for_slot()
        try:
            return await run_in_thread(name, limit, work, *arguments)
        finally:
            if has_slot:
                self._threads.release()

    async def reap_orphans(self) -> None:
        """Reap adopted zombies of unknown origin. If a call is already running, it repeats the
        search."""
        self._must_reap = True
        if self._is_reaping:
            return
        self._is_reaping = True
        try:
            while self._must_reap:
                self._must_reap = False
                await _reap_orphans()
        finally:
            self._is_reaping = False

    async def aclose(self) -> None:
        if self.reaper is not None:
            await self.reaper.aclose()

    async def _wait_for_slot(self) -> bool:
        try:
            async with asyncio.timeout(_TIMEOUT):
                return await self._threads.acquire()
        except TimeoutError:
            return False


async def _reap_orphans() -> None:
    """Reap the zombies that remain after a few loop iterations: other code may reap its own
    first."""
    if not orphans.is_adopting_orphans():
        return
    zombies = orphans.find_zombies()
    for delay in _REAP_DELAYS:
        if zombies:
            await asyncio.sleep(delay)
            zombies &= orphans.find_zombies()
    for pid in zombies:
        orphans.reap(pid)
