"""Request coalescing: one computation for all requests that wait for its result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from cogwork.core.clock import Clock

T = TypeVar("T")

_PAUSE_FACTOR = 4.0
_MAX_PAUSE = 1.0
"""Maximum pause in seconds."""


def proportional_pause(seconds: float) -> float:
    """Return a pause that limits computing to a fifth of the time. The pause is at most one
    second."""
    return min(_MAX_PAUSE, _PAUSE_FACTOR * seconds)


class Coalescer(Generic[T]):
    """Runs at most one computation at a time and shares its result.

    Each request gets the result of a computation that started after the request arrived, so results
    are never stale.
    """

    def __init__(
        self,
        compute: Callable[[], Awaitable[T]],
        clock: Clock,
        pause_after: Callable[[float], float] = proportional_pause,
    ) -> None:
        """Create a coalescer. `pause_after` returns the pause after a computation, given its
        duration."""
        self._compute = compute
        self._pause_after = pause_after
        self._clock = clock
        self._lock = asyncio.Lock()
        self._started_count = 0
        self._waiting_count = 0
        self._result: tuple[int, T] | None = None
        self._pause_until = 0.0

    async def get(self) -> T:
        started_before = self._started_count
        self._waiting_count += 1
        try:
            async with self._lock:
                result = self._result
                if result is None or result[0] <= started_before:
                    result = self._result = await self._compute_next()
                return result[1]
        finally:
            self._waiting_count -= 1
            if not self._waiting_count:
                self._result = None  # release the result, which may be large

    async def _compute_next(self) -> tuple[int, T]:
        await self._pause()
        self._started_count += 1
        number, start = self._started_count, self._clock.monotonic()
        try:
            return number, await self._compute()
        finally:
            now = self._clock.monotonic()
            self._pause_until = now + self._pause_after(now - start)

    async def _pause(self) -> None:
        left = self._pause_until - self._clock.monotonic()
        if left > 0:
            await self._clock.sleep(left)
