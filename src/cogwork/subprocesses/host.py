"""What all programs of a server share."""

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
"""Seconds to wait for a free thread. After that, work gets a thread of its own, because a disk may
hang."""

_REAP_DELAYS = (0.005, 0.05)


class ProgramHost:
    def __init__(self, clock: Clock, reaper: Reaper | None = None) -> None:
        """`reaper` ends the programs if the server is killed. The host closes it."""
        self.clock = clock
        self.reaper = reaper
        self.output_budget = LoopBudget(clock)
        """Time of the loop that reading the output of all programs may take."""
        self._threads = asyncio.Semaphore(_THREADS)
        self._is_reaping = False
        self._must_reap = False

    async def run_in_thread(
        self, name: str, limit: float, work: Callable[..., T], *arguments: Any
    ) -> T:
        """Run work that reads files. Raises TimeoutError after `limit` seconds.

        Only a few threads run at a time: many that read files, as when a hundred programs end at
        once, would keep the loop from running.
        """
        has_slot = await self._wait_for_slot()
        try:
            return await run_in_thread(name, limit, work, *arguments)
        finally:
            if has_slot:
                self._threads.release()

    async def reap_orphans(self) -> None:
        """Reap adopted zombies whose origin is unknown. Concurrent calls leave it to the first."""
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
    """Zombies that other code waits for are reaped by it in the next iterations of the loop, so
    only those that remain are reaped here."""
    if not orphans.is_adopting_orphans():
        return
    zombies = orphans.find_zombies()
    for delay in _REAP_DELAYS:
        if zombies:
            await asyncio.sleep(delay)
            zombies &= orphans.find_zombies()
    for pid in zombies:
        orphans.reap(pid)
