"""Token buckets, which limit a rate and allow short bursts. Pure: the time is a parameter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple


class Rate(NamedTuple):
    per_second: float
    burst: float
    """The maximum number of tokens, available after a long pause."""

    @classmethod
    def every(cls, seconds: float, *, burst: float) -> Rate:
        """Return a rate of one token per interval, given in seconds."""
        return cls(1 / seconds, burst)

    def scaled(self, factor: float) -> Rate:
        return Rate(self.per_second * factor, self.burst * factor)


class TokenBucket:
    """A token bucket whose number of tokens may be negative."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        self._tokens = rate.burst
        self._at = now

    def wait(self, rate: Rate, now: float, tokens: float = 0.0) -> float:
        """Return the seconds until the bucket has this many tokens; 0 if it has them now.

        Without `tokens`, return the seconds until the number of tokens is not negative. So a
        request that is larger than the burst is accepted, too, but makes the next request wait
        longer.
        """
        self.refill(rate, now)
        return max(0.0, (tokens - self._tokens) / rate.per_second)

    def take(self, amount: float) -> None:
        """Take tokens from a bucket that was just refilled, even if it has too few."""
        self._tokens -= amount

    def is_full(self, rate: Rate, now: float) -> bool:
        self.refill(rate, now)
        return self._tokens >= rate.burst

    def refill(self, rate: Rate, now: float) -> None:
        """Add the tokens for the time since the last refill."""
        grown = self._tokens + max(0.0, now - self._at) * rate.per_second
        self._tokens, self._at = min(grown, rate.burst), now


class TokenBuckets:
    """One bucket for each key. The least recently used keys are dropped."""

    def __init__(self, now: Callable[[], float], rate: Rate, max_tracked: int) -> None:
        """`now` returns a monotonic time in seconds."""
        self._now = now
        self._rate = rate
        self._max_tracked = max_tracked
        self._used: OrderedDict[Hashable, TokenBucket] = OrderedDict()
        """The buckets by key, least recently used first. The buckets of all other keys are full."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._used

    def wait(self, key: Hashable) -> float:
        """Return the seconds until a token is available."""
        bucket = self._used.get(key)
        return bucket.wait(self._rate, self._now(), 1) if bucket else 0.0

    def take(self, key: Hashable) -> None:
        """Take a token, even if the number of tokens becomes negative."""
        now = self._now()
        bucket = self._used.setdefault(key, TokenBucket(self._rate, now))
        bucket.refill(self._rate, now)
        bucket.take(1)
        self._used.move_to_end(key)
        if len(self._used) > self._max_tracked:
            self._used.popitem(last=False)

    def try_take(self, key: Hashable) -> bool:
        """Take a token if one is available, and return whether it was."""
        if self.wait(key) > 0:
            return False
        self.take(key)
        return True

    def refill(self, key: Hashable) -> None:
        """Fill the bucket immediately."""
        self._used.pop(key, None)
