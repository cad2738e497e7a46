"""How late the event loop is, measured only while somebody wants to know."""

from __future__ import annotations

import asyncio
from collections import deque

from cogwork.core.clock import Clock

TICK = 0.1
"""Seconds between two measurements."""
_WINDOW = 20
"""Measurements of which the longest lag is reported."""
_TICKS_AFTER_READ = 100
"""Measurements after the last read."""


class LoopLag:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lags: deque[float] = deque(maxlen=_WINDOW)
        self._ticks_left = 0

    @property
    def is_measuring(self) -> bool:
        return self._ticks_left > 0

    def read(self) -> float | None:
        """Return by how many seconds a timer was late at most in the last two seconds.

        None if that is not known yet: the first read begins to measure. Call it on the loop.
        """
        if not self.is_measuring:
            self._lags.clear()
            self._schedule()
        self._ticks_left = _TICKS_AFTER_READ
        return max(self._lags, default=None)

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(TICK, self._measure, self._clock.monotonic() + TICK)

    def _measure(self, due: float) -> None:
        self._lags.append(max(0.0, self._clock.monotonic() - due))
        self._ticks_left -= 1
        if self.is_measuring:
            self._schedule()
