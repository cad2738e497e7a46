"""The queue of digital interrupt ticks for one client."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

from viam.components.board import Tick, TickStream

from cogwork.core.errors import CogworkError, SlowConsumer

MAX_PENDING = 1024


class TickQueue(TickStream):
    """A bounded tick queue. It fails on overflow instead of dropping ticks, which would go
    unnoticed."""

    def __init__(self, interrupts: Collection[str]) -> None:
        self._interrupts = interrupts
        self._pending: deque[Tick] = deque()
        self._end_reason: CogworkError | None = None
        self._wakeup = asyncio.Event()

    def add(self, tick: Tick) -> None:
        if tick.pin_name not in self._interrupts or self._end_reason is not None:
            return
        if len(self._pending) == MAX_PENDING:
            self.end(SlowConsumer(f"{MAX_PENDING} ticks were waiting to be read: read them faster"))
            return
        self._pending.append(tick)
        self._wakeup.set()

    def end(self, reason: CogworkError) -> None:
        """End the stream with an error; pending ticks can still be read."""
        self._end_reason = reason
        self._wakeup.set()

    async def next(self) -> Tick:
        while not self._pending and self._end_reason is None:
            self._wakeup.clear()
            await self._wakeup.wait()
        if self._pending:
            return self._pending.popleft()
        assert self._end_reason is not None
        raise self._end_reason
