"""A budget for path searches, which ends searches that are cancelled or take too long."""

from __future__ import annotations

from cogwork.core.errors import CogworkError

MAX_CHECKS = 500_000
"""Maximum line-to-zone checks per path. This many checks take some seconds."""


class NoPath(CogworkError):
    """No path exists, or no path was found within the budget."""

    status = "FAILED_PRECONDITION"


class SearchBudget:
    """Limits the checks of a search that runs in a thread. Another thread can cancel the search."""

    def __init__(self, max_checks: int = MAX_CHECKS) -> None:
        self._remaining = max_checks

    def spend(self, checks: int) -> None:
        self._remaining -= checks
        if self._remaining < 0:
            raise NoPath(
                "there are too many stops and zones to find a path: use fewer stops at "
                "once, or delete zones"
            )

    def cancel(self) -> None:
        self._remaining = 0
