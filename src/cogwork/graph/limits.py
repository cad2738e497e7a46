"""Deadlines and retry delays of the graph."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GraphLimits:
    build: float = 120.0
    """Seconds a constructor or a reconfiguration may take."""
    close: float = 30.0
    """Seconds a close may take."""
    optional_wait: float = 2.0
    """Seconds a node waits for an optional dependency that is being built."""
    abandon_grace: float = 1.0
    """Seconds an abandoned constructor gets to return before another is started."""
    min_retry_delay: float = 0.5
    max_retry_delay: float = 30.0


def retry_delay(failures: int, limits: GraphLimits, rng: random.Random) -> float:
    """Return the exponential back-off, with jitter so that failed nodes do not retry in step."""
    doubled = limits.min_retry_delay * 2.0 ** min(failures - 1, 30)
    jittered = min(doubled, limits.max_retry_delay) * rng.uniform(0.75, 1.25)
    return min(max(jittered, limits.min_retry_delay), limits.max_retry_delay)


def slow_warning_times(limit: float) -> Iterator[float]:
    """Yield the elapsed times at which to warn about a slow call; the last one is the limit."""
    elapsed = 2.0
    while elapsed < limit:
        yield elapsed
        elapsed = 5.0 if elapsed < 5.0 else elapsed + 5.0
    yield limit
