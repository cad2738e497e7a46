"""Token buckets: they bound a rate, and let short bursts pass. Pure: the time is a parameter."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple


class Rate(NamedTuple):
    per_second: float
    burst: float
    """What may be taken at once after a long pause."""

    @classmethod
    def every(cls, seconds: float, *, burst: float) -> Rate:
        """Return a rate of one token in so many seconds."""
        return cls(1 / seconds, burst)

    def scaled(self, factor: float) -> Rate:
        return Rate(self.per_second * factor, self.burst * factor)


class TokenBucket:
    """A bucket that may be in debt."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, rate: Rate, now: float) -> None:
        self._tokens = rate.burst
        self._at = now

    def wait(self, rate: Rate, now: float, tokens: float = 0.0) -> float:
        """Return the seconds until there are so many tokens; 0 if there are now.

        Without `tokens`, until it is out of debt: a request that is larger than the burst passes
        then as well, and the next one waits longer.
        """
        self.refill(rate, now)
        return max(0.0, (tokens - self._tokens) / rate.per_second)

    def take(self, amount: float) -> None:
        """Take tokens of a bucket that was just refilled, whether it has them or not."""
        self._tokens -= amount

    def is_full(self, rate: Rate, now: float) -> bool:
        self.refill(rate, now)
        return self._tokens >= rate.burst

    def refill(self, rate: Rate, now: float) -> None:
        """Add the tokens of the time that has passed."""
        grown = self._tokens + max(0.0, now - self._at) * rate.per_second
        self._tokens, self._at = min(grown, rate.burst), now


class TokenBuckets:
    """One bucket for each key. Keys that have not been used for longest are forgotten."""

    def __init__(self, now: Callable[[], float], rate: Rate, max_tracked: int) -> None:
        """`now` is monotonic, in seconds."""
        self._now = now
        self._rate = rate
        self._max_tracked = max_tracked
        self._used: OrderedDict[Hashable, TokenBucket] = OrderedDict()
        """Least recently used first. Other keys have full buckets."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._used

    def wait(self, key: Hashable) -> float:
        """Return the seconds until there is a token."""
        bucket = self._used.get(key)
        return bucket.wait(self._rate, self._now(), 1) if bucket else 0.0

    def take(self, key: Hashable) -> None:
        """Take a token, or borrow one from the future."""
        now = self._now()
        bucket = self._used.setdefault(key, TokenBucket(self._rate, now))
        bucket.refill(self._rate, now)
        bucket.take(1)
        self._used.move_to_end(key)
        if len(self._used) > self._max_tracked:
            self._used.popitem(last=False)

    def try_take(self, key: Hashable) -> bool:
        """Take a token if there is one, and return whether there was."""
        if self.wait(key) > 0:
            return False
        self.take(key)
        return True

    def refill(self, key: Hashable) -> None:
        """Fill the bucket at once."""
        self._used.pop(key, None)
