"""Exponential back-off: how long to wait before the next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

_MAX_DOUBLINGS: Final = 30
"""More would overflow, and every maximum is reached before."""
_RANDOM: Final = random.Random()  # noqa: S311 - it only spreads attempts
"""Not the generator of the `random` module, which a driver may seed."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The delays between attempts. `Backoff` counts the failures of one user."""

    first: float
    """Seconds after the first failure, and at least."""
    maximum: float
    jitter: float = 0.5
    """The share of each delay that is random, so that many who failed at the same time do not
    retry at the same time."""
    rng: random.Random = field(default=_RANDOM, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        doubled = min(self.first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.maximum)
        return max(self.first, doubled * self.rng.uniform(1.0 - self.jitter, 1.0))


class Backoff:
    """Counts failures in a row, and returns the delay after each."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.failures = 0
        self.delay = 0.0
        """Seconds to wait after the last failure; 0 if there is none."""

    def next_delay(self) -> float:
        """Count a failure, and return the seconds to wait before the next attempt."""
        self.failures += 1
        self.delay = self.policy.delay(self.failures)
        return self.delay

    def reset(self) -> None:
        """Forget the failures, after a success."""
        self.failures, self.delay = 0, 0.0
