"""Exponential back-off: how long to wait before the next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass

_MAX_DOUBLINGS = 30
"""More would overflow, and every maximum is reached before."""


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float
    """Seconds after the first failure, and at least."""
    longest: float

    def delay(self, failures: int, rng: random.Random) -> float:
        """Return the seconds to wait after so many failures in a row.

        Half of it is random, so that many who failed at the same time do not retry at the same
        time.
        """
        doubled = min(self.first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.longest)
        return max(self.first, doubled * rng.uniform(0.5, 1.0))
