"""The lag of the event loop, measured only on request."""

from __future__ import annotations

import asyncio
from collections import deque

from cogwork.core.clock import Clock

TICK = 0.1
"""Seconds between two measurements."""
_WINDOW = 20
"""Number of recent measurements, of which the longest lag is reported."""
_TICKS_AFTER_READ = 100
"""Number of measurements after which measuring stops, unless the lag is read again."""


class LoopLag:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lags: deque[float] = deque(maxlen=_WINDOW)
        self._ticks_left = 0

    @property
    def is_measuring(self) -> bool:
        return self._ticks_left > 0

    def read(self) -> float | None:
        """Return the maximum lag in seconds during the last two seconds.

        The first read starts the measurement, and returns None. Call this on the event loop.
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
