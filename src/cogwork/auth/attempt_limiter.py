"""Limits failed logins.

The main budget belongs to a pair of an address and an entity, so a client with an outdated key
locks out only itself. Larger budgets of the address and of the entity bound guesses that vary the
other. The entity's applies only to addresses that have failed with it, so guesses from elsewhere do
not lock out an honest client. When a budget is spent, logins are refused without a check.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from cogwork.auth.errors import TooManyAttempts


@dataclass(frozen=True, slots=True)
class Budget:
    burst: int
    """Failures allowed at once."""
    refill_seconds: float
    """Seconds until one more failure is allowed."""


@dataclass(frozen=True, slots=True)
class AttemptLimits:
    pair: Budget = Budget(10, 6.0)
    address: Budget = Budget(100, 1.0)
    entity: Budget = Budget(30, 2.0)
    max_tracked: int = field(default=4096)
    """Pairs, addresses and entities that are remembered, of each. The oldest is forgotten."""


class AttemptLimiter:
    def __init__(self, now: Callable[[], float], limits: AttemptLimits | None = None) -> None:
        """`now` is monotonic, in seconds."""
        limits = limits or AttemptLimits()
        self._pairs = _Failures(now, limits.pair, limits.max_tracked)
        self._addresses = _Failures(now, limits.address, limits.max_tracked)
        self._entities = _Failures(now, limits.entity, limits.max_tracked)

    def check(self, address: str, entity: str) -> None:
        """Raise TooManyAttempts if too many logins have failed."""
        network = _network_of(address)
        waits = [self._pairs.wait((network, entity)), self._addresses.wait(network)]
        if (network, entity) in self._pairs:
            waits.append(self._entities.wait(entity))
        if max(waits) > 0:
            raise TooManyAttempts(
                f"too many failed logins; try again in {max(1.0, max(waits)):.0f}s"
            )

    def record_failure(self, address: str, entity: str) -> None:
        network = _network_of(address)
        self._pairs.add((network, entity))
        self._addresses.add(network)
        self._entities.add(entity)

    def record_success(self, address: str, entity: str) -> None:
        self._pairs.forget((_network_of(address), entity))


class _Failures:
    """Failures so far by key, less those that have been refilled."""

    def __init__(self, now: Callable[[], float], budget: Budget, max_tracked: int) -> None:
        self._now = now
        self._budget = budget
        self._max_tracked = max_tracked
        self._counts: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        """Failures and the time of the last one, oldest first."""

    def __contains__(self, key: Hashable) -> bool:
        return key in self._counts

    def wait(self, key: Hashable) -> float:
        """Return the seconds until the next attempt."""
        excess = self._count(key) - (self._budget.burst - 1)
        return max(0.0, excess * self._budget.refill_seconds)

    def add(self, key: Hashable) -> None:
        self._counts[key] = (self._count(key) + 1, self._now())
        self._counts.move_to_end(key)
        if len(self._counts) > self._max_tracked:
            self._counts.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        self._counts.pop(key, None)

    def _count(self, key: Hashable) -> float:
        count, since = self._counts.get(key, (0.0, 0.0))
        return max(0.0, count - (self._now() - since) / self._budget.refill_seconds)


def _network_of(address: str) -> str:
    """Return the address, or for IPv6 its network: one client may have all addresses of it."""
    family, _, host = address.partition(":")
    if family != "ipv6":
        return address
    try:
        return str(ipaddress.ip_network((host.strip("[]"), 64), strict=False))
    except ValueError:
        return address
