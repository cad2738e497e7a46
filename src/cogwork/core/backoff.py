"""Exponential back-off: how long to wait before the next attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

_MAX_DOUBLINGS: Final = 30
"""Maximum number of doublings. More would overflow; every practical maximum is reached earlier."""
_RANDOM: Final = random.Random()  # noqa: S311 - it only spreads attempts
"""A private generator, because a driver may seed the generator of the `random` module."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The delays between attempts. Each user of a policy counts its failures with a `Backoff`."""

    first: float
    """Seconds to wait after the first failure, which is also the minimum."""
    maximum: float
    jitter: float = 0.5
    """The share of each delay that is random, so that clients that failed at the same time do not
    all retry at the same time."""
    rng: random.Random = field(default=_RANDOM, repr=False, compare=False)

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after this number of failures in a row."""
        doubled = min(self.first * 2.0 ** min(failures - 1, _MAX_DOUBLINGS), self.maximum)
        return max(self.first, doubled * self.rng.uniform(1.0 - self.jitter, 1.0))


class Backoff:
    """Counts failures in a row, and returns the delay after each failure."""

    def __init__(self, policy: RetryPolicy) -> None:
        self.policy = policy
        self.failures = 0
        self.delay = 0.0
        """Seconds to wait after the last failure; 0 if the last attempt succeeded."""

    def next_delay(self) -> float:
        """Count a failure, and return the seconds to wait before the next attempt."""
        self.failures += 1
        self.delay = self.policy.delay(self.failures)
        return self.delay

    def reset(self) -> None:
        """Reset the number of failures after a success."""
        self.failures, self.delay = 0, 0.0
