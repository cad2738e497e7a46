"""Clocks that are passed as parameters: the system clock, and a manual one for tests."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Collection
from typing import Any, Protocol

Waitable = asyncio.Future[Any]


class Clock(Protocol):
    """A source of the time, passed as a parameter so that tests can advance the time themselves."""

    def time(self) -> float:
        """Return the wall-clock time in seconds since 1970."""

    def monotonic(self) -> float:
        """Return a time in seconds that never jumps, for deadlines."""

    async def sleep(self, seconds: float) -> None: ...

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        """Wait until one of `waitables` is done or the timeout expires. Never cancel a waitable."""


class SystemClock:
    """The clock of this computer."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        await asyncio.wait(waitables, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


class ManualClock:
    """A clock that moves only when `advance` is awaited."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._sequence = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        await self._set_alarm(seconds)

    async def wait(self, waitables: Collection[Waitable], timeout: float | None) -> None:
        if timeout is None or timeout <= 0:
            await asyncio.wait(waitables, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            return
        alarm = self._set_alarm(timeout)
        try:
            await asyncio.wait({*waitables, alarm}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()

    async def advance(self, seconds: float) -> None:
        """Advance the time, waking every sleeper at its own time, in order."""
        target = self._now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, alarm = heapq.heappop(self._sleepers)
            if alarm.done():
                continue
            self._now = due
            alarm.set_result(None)
            await self.settle()
        self._now = target
        await self.settle()

    async def settle(self) -> None:
        """Run all callbacks that are ready, until the loop only waits for timers and input."""
        loop = asyncio.get_running_loop()
        # Only the loop knows whether a callback is still ready. A loop that hides this (uvloop)
        # gets a fixed number of iterations.
        ready = getattr(loop, "_ready", None)
        if ready is None:
            for _ in range(100):
                await asyncio.sleep(0)
            return
        await asyncio.sleep(0)
        while ready:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0)

    def _set_alarm(self, seconds: float) -> asyncio.Future[None]:
        alarm: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._sequence), alarm))
        return alarm
