"""How often the resources of another machine may change here."""

from __future__ import annotations

from typing import Final

from cogwork.core.clock import Clock
from cogwork.core.limits.token_bucket import Rate, TokenBucket
from cogwork.remotes.names import MAX_RESOURCES

RATE: Final = 50.0
"""Names that may appear or disappear per second, on average."""
BURST: Final = MAX_RESOURCES
MAX_WAIT: Final = 30.0
"""Seconds after which a list is always looked at again."""


_LIMIT: Final = Rate(RATE, BURST)
_MAX_SPENT: Final = BURST + RATE * MAX_WAIT


class ChangeLimit:
    """A machine that has used up its token bucket is asked less often."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(_LIMIT, clock.monotonic())

    def spend(self, changes: int) -> None:
        spent = RATE * self._bucket.wait(_LIMIT, self._clock.monotonic(), BURST)
        # Bounded, so that a machine that has calmed down is soon asked as often as before.
        self._bucket.take(min(changes, _MAX_SPENT - spent))

    def wait_time(self) -> float:
        """Return the seconds until the next change may be looked for."""
        return self._bucket.wait(_LIMIT, self._clock.monotonic())
