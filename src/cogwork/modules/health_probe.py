"""The health probe of a running module: checks whether it responds."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from cogwork.modules.context import ModuleContext
from cogwork.modules.session import ModuleSession
from cogwork.subprocesses.process import Child


class HealthProbe:
    def __init__(
        self,
        name: str,
        child: Child,
        session: ModuleSession,
        context: ModuleContext,
        log: logging.Logger,
    ) -> None:
        self._name = name
        self._child = child
        self._session = session
        self._interval = context.deadlines.probe
        self._clock = context.clock
        self._log = log

    async def run_until(self, restart_requested: asyncio.Event) -> None:
        """Probe until the process exits or a restart is requested."""
        stop = asyncio.ensure_future(restart_requested.wait())
        try:
            while not self._child.exited.done() and not stop.done():
                await self._clock.wait({self._child.exited, stop}, self._interval)
                if not self._child.exited.done() and not stop.done():
                    await self._probe(stop)
        finally:
            stop.cancel()

    async def _probe(self, stop: asyncio.Future[Any]) -> None:
        probe = asyncio.ensure_future(self._session.client.ping(self._interval))
        try:
            waited: set[asyncio.Future[Any]] = {probe, self._child.exited, stop}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if probe.done():
                self._record_answer(probe.result())
        finally:
            probe.cancel()

    def _record_answer(self, responds: bool) -> None:
        reason = (
            None
            if responds
            else (
                f'module "{self._name}" (process {self._child.pid}) runs but does not respond; '
                "restart it if it does not recover"
            )
        )
        if reason != self._session.unresponsive_reason:
            self._session.unresponsive_reason = reason
            self._log.warning("%s", reason or "responds again")
