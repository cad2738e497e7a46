"""Crashes of the server: how long to wait before the next start, and when to give a version up."""

from __future__ import annotations

import random
from collections import deque
from typing import Final

from cogwork.core.backoff import Backoff

_BACKOFF: Final = Backoff(1.0, 60.0)
_WINDOW: Final = 600.0
_MAX_CRASHES: Final = 3
"""In the window. With more, a version counts as broken."""


class CrashRecord:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._times: deque[float] = deque(maxlen=64)

    def add(self, now: float) -> None:
        self._times.append(now)

    def clear(self) -> None:
        """Begin anew, for example with another version."""
        self._times.clear()

    def delay(self, now: float) -> float:
        """Return the seconds to wait before the next start."""
        return _BACKOFF.delay(max(1, self._recent(now)), self._rng)

    def is_loop(self, now: float) -> bool:
        return self._recent(now) >= _MAX_CRASHES

    def _recent(self, now: float) -> int:
        return sum(now - each <= _WINDOW for each in self._times)
