"""How often the resources of another machine may change here."""

from __future__ import annotations

from typing import Final

from cogwork.core.clock import Clock
from cogwork.remotes.names import MAX_RESOURCES

RATE: Final = 50.0
"""Names that may appear or disappear per second, on average."""
BURST: Final = MAX_RESOURCES
MAX_WAIT: Final = 30.0
"""Seconds after which a list is always looked at again."""


class ChangeLimit:
    """A token bucket. A machine that has used it up is asked less often."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = 0.0
        self._as_of = clock.monotonic()

    def spend(self, changes: int) -> None:
        # Bounded, so that a machine that has calmed down is soon asked as often as before.
        self._spent = min(self._count_spent() + changes, BURST + RATE * MAX_WAIT)
        self._as_of = self._clock.monotonic()

    def wait_time(self) -> float:
        """Return the seconds until the next change may be looked for."""
        return min(max(0.0, self._count_spent() - BURST) / RATE, MAX_WAIT)

    def _count_spent(self) -> float:
        return max(0.0, self._spent - RATE * (self._clock.monotonic() - self._as_of))
