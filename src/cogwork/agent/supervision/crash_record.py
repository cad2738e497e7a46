"""Crashes of the server: how long to wait before the next start, and when to give a version up."""

from __future__ import annotations

from collections import deque
from typing import Final

from cogwork.core.backoff import RetryPolicy

_RETRY: Final = RetryPolicy(first=1.0, maximum=60.0)
_WINDOW: Final = 600.0
_MAX_CRASHES: Final = 3
"""In the window. With more, a version counts as broken."""


class CrashRecord:
    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=64)

    def add(self, now: float) -> None:
        self._times.append(now)

    def clear(self) -> None:
        """Begin anew, for example with another version."""
        self._times.clear()

    def delay(self, now: float) -> float:
        """Return the seconds to wait before the next start."""
        return _RETRY.delay(max(1, self._recent(now)))

    def is_loop(self, now: float) -> bool:
        return self._recent(now) >= _MAX_CRASHES

    def _recent(self, now: float) -> int:
        return sum(now - each <= _WINDOW for each in self._times)
