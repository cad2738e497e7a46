"""How long the graph waits for what."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    build: float = 120.0
    """Seconds a constructor or a reconfiguration may take."""
    close: float = 30.0
    """Seconds a close may take."""
    patience: float = 2.0
    """Seconds a node waits for an optional dependency that is being built."""
    grace: float = 1.0
    """Seconds an abandoned constructor gets to return before another is started."""
    first_retry: float = 0.5
    last_retry: float = 30.0


def retry_delay(failures: int, limits: Limits, rng: random.Random) -> float:
    """Doubles with each failure, with jitter so that many failures do not come back as one."""
    doubled = limits.first_retry * 2.0 ** min(failures - 1, 30)
    jittered = min(doubled, limits.last_retry) * rng.uniform(0.75, 1.25)
    return min(max(jittered, limits.first_retry), limits.last_retry)


def slow_moments(limit: float) -> Iterator[float]:
    """When to say that something is slow, ending with the moment it is given up."""
    moment = 2.0
    while moment < limit:
        yield moment
        moment = 5.0 if moment < 5.0 else moment + 5.0
    yield limit
