"""Rate limits for the queries that are decoded and answered on one network. No I/O.

Other hosts must not be able to keep the machine busy, or to amplify traffic with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogwork.core.limits.token_bucket import Rate, TokenBuckets

SOURCE: Final = Rate.every(0.1, burst=30)
"""Rate limit of queries from one address. A client sends several queries within a second."""
TOTAL: Final = Rate.every(0.02, burst=100)
"""Rate limit of queries from all addresses together, because addresses may be forged."""
_MAX_SOURCES: Final = 256


class QueryLimiter:
    def __init__(self, now: Callable[[], float]) -> None:
        """`now` returns monotonic seconds."""
        self._sources = TokenBuckets(now, SOURCE, _MAX_SOURCES)
        self._total = TokenBuckets(now, TOTAL, 1)

    def admit(self, source: str) -> bool:
        """Return whether to decode and answer a query from this address."""
        return self._sources.try_take(source) and self._total.try_take(None)
