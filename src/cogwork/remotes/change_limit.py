"""A limit on the rate at which a remote's resources may change on this machine."""

from __future__ import annotations

from typing import Final

from cogwork.core.clock import Clock
from cogwork.core.limits.token_bucket import Rate, TokenBucket
from cogwork.remotes.names import MAX_RESOURCES

RATE: Final = 50.0
"""Average number of names that may appear or disappear per second."""
BURST: Final = MAX_RESOURCES
MAX_WAIT: Final = 30.0
"""Maximum seconds until the resources are listed again."""


_LIMIT: Final = Rate(RATE, BURST)
_MAX_SPENT: Final = BURST + RATE * MAX_WAIT


class ChangeLimit:
    """A token bucket for changes. While it is empty, the remote's resources are listed less
    often."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._bucket = TokenBucket(_LIMIT, clock.monotonic())

    def spend(self, changes: int) -> None:
        spent = RATE * self._bucket.wait(_LIMIT, self._clock.monotonic(), BURST)
        # Limit the wait, so that a remote whose resources stop changing is soon listed as often as
        # before.
        self._bucket.take(min(changes, _MAX_SPENT - spent))

    def wait_time(self) -> float:
        """Return the seconds until the resources may be listed again."""
        return self._bucket.wait(_LIMIT, self._clock.monotonic())
