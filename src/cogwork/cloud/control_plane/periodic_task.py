"""Periodic tasks of the cloud, which continue after errors."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from cogwork.cloud.control_plane.health import CloudHealth, StoreState
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.errors import CogworkError

_log = logging.getLogger("cloud")


class PeriodicTask(NamedTuple):
    name: str
    """The name of the task, as the subject of a sentence: `saving when machines were last seen`."""
    work: Callable[[], Awaitable[object]]
    interval: float
    """Seconds from the end of one run to the next."""

    async def run(self, clock: Clock, health: CloudHealth) -> None:
        """Run until cancelled. Report an error to the health of the cloud until a run succeeds."""
        while True:
            try:
                await self.work()
            except Exception as error:
                if not isinstance(error, CogworkError) and not health.has_problem(self.name):
                    _log.exception("%s failed unexpectedly", self.name)
                health.report(
                    self.name, StoreState.DEGRADED, f"{error_text(error)}; it is tried again"
                )
            else:
                health.recover(self.name)
            await clock.sleep(self.interval)


class PeriodicTasks:
    """The running periodic tasks."""

    def __init__(self, clock: Clock, health: CloudHealth) -> None:
        self._clock = clock
        self._health = health
        self._running: list[asyncio.Task[None]] = []

    def start(self, *tasks: PeriodicTask) -> None:
        self._running += [
            asyncio.create_task(each.run(self._clock, self._health), name=each.name)
            for each in tasks
        ]

    async def aclose(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
