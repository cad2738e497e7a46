"""Token buckets by key: how often something may happen, at once and in the long run."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    burst: int
    """Tokens of a full bucket."""
    refill_seconds: float
    """Seconds until one more token is there."""


class TokenBuckets:
    """One bucket for each key. Keys that have not been used for longest are forgotten."""

    def __init__(self, now: Callable[[], float], budget: Budget, max_tracked: int) -> None:
        """`now` is monotonic, in seconds."""
        self._now = now
        self._budget = budget
        self._max_tracked = max_tracked
        self._taken: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Tokens that are missing, and since when, least recently used first."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._taken

    def wait(self, key: Hashable) -> float:
        """Return the seconds until there is a token."""
        excess = self._missing(key) - (self._budget.burst - 1)
        return max(0.0, excess * self._budget.refill_seconds)

    def take(self, key: Hashable) -> None:
        """Take a token, or borrow one from the future."""
        self._taken[key] = (self._missing(key) + 1, self._now())
        self._taken.move_to_end(key)
        if len(self._taken) > self._max_tracked:
            self._taken.popitem(last=False)

    def try_take(self, key: Hashable) -> bool:
        """Take a token if there is one, and return whether there was."""
        if self.wait(key) > 0:
            return False
        self.take(key)
        return True

    def refill(self, key: Hashable) -> None:
        """Fill the bucket at once."""
        self._taken.pop(key, None)

    def _missing(self, key: Hashable) -> float:
        count, since = self._taken.get(key, (0.0, 0.0))
        return max(0.0, count - (self._now() - since) / self._budget.refill_seconds)
