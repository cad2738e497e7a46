"""Ticks of digital interrupts, on their way to one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

from viam.components.board import Tick, TickStream

from cogwork.core.errors import CogworkError, FellBehind

MOST_WAITING = 1024


class Ticks(TickStream):
    """Ends with an error rather than leave ticks out: whoever counts them would never know."""

    def __init__(self, interrupts: Collection[str]) -> None:
        self._interrupts = interrupts
        self._waiting: deque[Tick] = deque()
        self._end: CogworkError | None = None
        self._news = asyncio.Event()

    def add(self, tick: Tick) -> None:
        if tick.pin_name not in self._interrupts or self._end is not None:
            return
        if len(self._waiting) == MOST_WAITING:
            self.end(FellBehind(f"{MOST_WAITING} ticks were waiting to be read: read them faster"))
            return
        self._waiting.append(tick)
        self._news.set()

    def end(self, reason: CogworkError) -> None:
        """What waits can still be read."""
        self._end = reason
        self._news.set()

    async def next(self) -> Tick:
        while not self._waiting and self._end is None:
            self._news.clear()
            await self._news.wait()
        if self._waiting:
            return self._waiting.popleft()
        assert self._end is not None
        raise self._end
