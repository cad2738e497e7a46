"""Whether a module that was ready is still there, and answers."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from cogwork.modules.ground import Ground
from cogwork.modules.incarnation import Incarnation
from cogwork.modules.process import Child


class Watch:
    def __init__(
        self, name: str, child: Child, life: Incarnation, ground: Ground, log: logging.Logger
    ) -> None:
        self._name = name
        self._child = child
        self._life = life
        self._probes = ground.deadlines.probe
        self._clock = ground.clock
        self._log = log

    async def until(self, wanted: asyncio.Event) -> None:
        """Until its process has ended, or somebody wants something else of it."""
        stop = asyncio.ensure_future(wanted.wait())
        try:
            while not self._child.exited.done() and not stop.done():
                await self._clock.wait({self._child.exited, stop}, self._probes)
                if not self._child.exited.done() and not stop.done():
                    await self._probe(stop)
        finally:
            stop.cancel()

    async def _probe(self, stop: asyncio.Future[Any]) -> None:
        probe = asyncio.ensure_future(self._life.calls.answers(self._probes))
        try:
            waited: set[asyncio.Future[Any]] = {probe, self._child.exited, stop}
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if probe.done():
                self._note(probe.result())
        finally:
            probe.cancel()

    def _note(self, answers: bool) -> None:
        silent = (
            None
            if answers
            else (
                f'module "{self._name}" runs (process {self._child.pid}) and does not answer; '
                "restart it if it does not come back"
            )
        )
        if silent != self._life.trouble:
            self._life.trouble = silent
            self._log.warning("%s", silent or "answers again")
