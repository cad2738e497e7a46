"""Crashes of the server, the back-off between restarts, and crash loops."""

from __future__ import annotations

from collections import deque
from typing import Final

from cogwork.core.backoff import RetryPolicy

_RETRY: Final = RetryPolicy(first=1.0, maximum=60.0)
_WINDOW: Final = 600.0
_MAX_CRASHES: Final = 3
"""Number of crashes within the window that make a crash loop."""


class CrashRecord:
    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=64)

    def add(self, now: float) -> None:
        self._times.append(now)

    def clear(self) -> None:
        """Forget the crashes, for example before another version starts."""
        self._times.clear()

    def delay(self, now: float) -> float:
        """Return the seconds to wait before the next restart."""
        return _RETRY.delay(max(1, self._recent(now)))

    def is_loop(self, now: float) -> bool:
        return self._recent(now) >= _MAX_CRASHES

    def _recent(self, now: float) -> int:
        return sum(now - each <= _WINDOW for each in self._times)
