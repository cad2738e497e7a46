"""From a process that was just started to a module that is ready."""

from __future__ import annotations

import asyncio
import contextlib
import os

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.modules.calls import Brought, ModuleCalls, Refused
from cogwork.modules.process import Child

_LOOK = 0.02
"""Seconds between two looks for its socket."""
_ASK = 0.2
"""Seconds between two questions whether it is ready."""
_STAYS = "a module serves until it is told to end: with the SDK, call Module.run_from_registry()"


class NotRunning(CogworkError):
    """Why a module does not run."""

    status = "UNAVAILABLE"

    def __init__(self, words: str, last_lines: tuple[str, ...] = ()) -> None:
        """The lines: what it said before it ended."""
        super().__init__(words)
        self.last_lines = last_lines


class Greeting:
    def __init__(self, address: str, parent: str, limit: float, clock: Clock) -> None:
        """`address`: where its socket will be. `parent`: where it reaches the machine. `limit`:
        seconds that it has."""
        self._address = address
        self._parent = parent
        self._limit = limit
        self._clock = clock

    async def exchanged(self, child: Child, calls: ModuleCalls) -> Brought:
        """Raises NotRunning when it ends meanwhile, or takes too long."""
        greeting = asyncio.ensure_future(self._ready(calls))
        try:
            await self._clock.wait({greeting, child.exited}, self._limit)
            if greeting.done():
                return greeting.result()
        finally:
            greeting.cancel()
            await asyncio.gather(greeting, return_exceptions=True)
        if child.exited.done():
            ended = child.exited.result()
            words = f"{ended.words} before it was ready"
            if ended.code == 0:
                words += f"; {_STAYS}"
            raise NotRunning(words, ended.last_lines)
        raise NotRunning(
            f"was not ready within {self._limit:g}s; see its log, or set "
            "VIAM_MODULE_STARTUP_TIMEOUT"
        )

    async def _ready(self, calls: ModuleCalls) -> Brought:
        is_path = self._address.startswith("/")
        while is_path and not os.path.exists(self._address):  # noqa: PTH110, ASYNC240
            await self._clock.sleep(_LOOK)
        while True:
            with contextlib.suppress(_NotListening):
                brought = await self._asked(calls)
                if brought is not None:
                    return brought
            await self._clock.sleep(_ASK)

    async def _asked(self, calls: ModuleCalls) -> Brought | None:
        try:
            return await calls.ready(self._parent, self._limit)
        except Refused as error:
            if error.status == "UNAVAILABLE":
                raise _NotListening from None
            raise NotRunning(f"refused to work: {error}") from None


class _NotListening(Exception):
    """Its socket is there, and nobody at it yet."""
