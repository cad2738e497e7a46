"""How much thought a way is worth: what nobody waits for, or what has no end, is given up."""

from __future__ import annotations

from cogwork.core.errors import CogworkError

MOST = 500_000
"""Looks at zones, from one spot to another, for one way: some seconds."""


class NoWay(CogworkError):
    """No way leads there, or none that can be found."""

    status = "FAILED_PRECONDITION"


class Effort:
    """Spent in a thread, and given up from elsewhere."""

    def __init__(self, most: int = MOST) -> None:
        self._left = most

    def spend(self, looks: int) -> None:
        self._left -= looks
        if self._left < 0:
            raise NoWay(
                "there are too many stops and zones to find a way: send it past fewer stops at "
                "once, or delete zones"
            )

    def give_up(self) -> None:
        self._left = 0
