"""Limits the queries that are decoded and answered on one network. Pure.

Others on the network must not use the machine to amplify traffic, nor keep it busy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogwork.core.limits.token_bucket import Rate, TokenBuckets

SOURCE: Final = Rate.every(0.1, burst=30)
"""Queries of one address. A client asks several times within a second."""
TOTAL: Final = Rate.every(0.02, burst=100)
"""Queries of all addresses, which may be forged."""
_MAX_SOURCES: Final = 256


class QueryLimiter:
    def __init__(self, now: Callable[[], float]) -> None:
        """`now` is monotonic, in seconds."""
        self._sources = TokenBuckets(now, SOURCE, _MAX_SOURCES)
        self._total = TokenBuckets(now, TOTAL, 1)

    def admit(self, source: str) -> bool:
        """Return whether a query from this address is decoded. Refused ones cost nothing."""
        return self._sources.try_take(source) and self._total.try_take(None)
