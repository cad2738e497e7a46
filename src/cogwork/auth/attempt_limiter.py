"""Limits failed logins per address and per entity.

Each has a budget of failures that refills slowly. When it is spent, logins are refused without a
check, so guessing does not get faster with more connections or more addresses. An address that has
logged in as an entity before keeps a budget of its own: guesses from elsewhere do not lock it out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cogwork.auth.errors import TooManyAttempts


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    burst: int = 10
    """Failures allowed at once."""
    refill_seconds: float = 6.0
    """Seconds until one more failure is allowed."""
    max_tracked: int = 4096
    """Addresses, entities and pairs of them that are remembered. The oldest is forgotten."""


class AttemptLimiter:
    def __init__(self, now: Callable[[], float], limits: AttemptLimits | None = None) -> None:
        """`now` is monotonic, in seconds."""
        self._limits = limits or AttemptLimits()
        self._budgets = _Budgets(now, self._limits)
        self._trusted: OrderedDict[tuple[str, str], None] = OrderedDict()

    def check(self, address: str, entity: str) -> None:
        """Raise TooManyAttempts if too many logins have failed."""
        wait = max(map(self._budgets.wait_seconds, self._keys(address, entity)))
        if wait > 0:
            raise TooManyAttempts(
                f"too many failed logins; try again in {wait:.0f}s"
                if wait >= 1
                else "too many failed logins; try again in a second"
            )

    def record_failure(self, address: str, entity: str) -> None:
        for key in self._keys(address, entity):
            self._budgets.spend(key)

    def record_success(self, address: str, entity: str) -> None:
        self._trusted[address, entity] = None
        self._trusted.move_to_end((address, entity))
        if len(self._trusted) > self._limits.max_tracked:
            self._trusted.popitem(last=False)

    def _keys(self, address: str, entity: str) -> tuple[Hashable, ...]:
        if (address, entity) in self._trusted:
            return ((address, entity),)
        return (("address", address), ("entity", entity))


class _Budgets:
    """Failures so far by key, less those that have been refilled."""

    def __init__(self, now: Callable[[], float], limits: AttemptLimits) -> None:
        self._now = now
        self._limits = limits
        self._spent: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Failures and the time of the last one, oldest first."""

    def wait_seconds(self, key: Hashable) -> float:
        excess = self._spent_now(key) - (self._limits.burst - 1)
        return max(0.0, excess * self._limits.refill_seconds)

    def spend(self, key: Hashable) -> None:
        self._spent[key] = (self._spent_now(key) + 1, self._now())
        self._spent.move_to_end(key)
        if len(self._spent) > self._limits.max_tracked:
            self._spent.popitem(last=False)

    def _spent_now(self, key: Hashable) -> float:
        spent, since = self._spent.get(key, (0.0, 0.0))
        return max(0.0, spent - (self._now() - since) / self._limits.refill_seconds)
