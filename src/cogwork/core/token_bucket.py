"""A token bucket: bounds a rate, and lets short bursts pass. Pure: the time is a parameter."""

from __future__ import annotations

from typing import NamedTuple


class Rate(NamedTuple):
    per_second: float
    burst: float
    """What may be taken at once after a long pause."""

    def scaled(self, factor: float) -> Rate:
        return Rate(self.per_second * factor, self.burst * factor)


class TokenBucket:
    """A bucket that may be in debt.

    While there is a token, any amount may be taken. So a request that is larger than the burst
    passes as well, and the next one waits longer.
    """

    __slots__ = ("_at", "_tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        self._tokens = rate.burst
        self._at = now

    def wait(self, rate: Rate, now: float) -> float:
        """Return the seconds until something may be taken; 0 if it may be now."""
        self._refill(rate, now)
        return max(0.0, -self._tokens / rate.per_second)

    def take(self, amount: float) -> None:
        """Take tokens, without asking whether there are any."""
        self._tokens -= amount

    def is_full(self, rate: Rate, now: float) -> bool:
        self._refill(rate, now)
        return self._tokens >= rate.burst

    def _refill(self, rate: Rate, now: float) -> None:
        grown = self._tokens + max(0.0, now - self._at) * rate.per_second
        self._tokens, self._at = min(grown, rate.burst), now
