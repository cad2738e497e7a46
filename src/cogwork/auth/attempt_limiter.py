"""Limits failed logins.

A generated secret cannot be guessed, so it is always checked, and a correct one is accepted even
after many failures. Failed logins use up budgets: one for each pair of network and entity, and
larger ones for each network and for each entity. So a client with an outdated key uses up only the
budget of its own pair. If a budget is used up, a failed login raises TooManyAttempts instead of
Unauthenticated.

A short secret, which a person has made up, can be guessed. It is checked only while the budget of
its pair has tokens left. If the network has failed with the entity before, the budget of the entity
must have tokens left, too. So guesses from other networks do not lock out an honest client.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final, NamedTuple

from cogwork.auth.errors import TooManyAttempts
from cogwork.core.limits.token_bucket import Rate, TokenBuckets

MIN_GENERATED_LENGTH: Final = 22
"""Length of the shortest secret that cannot be guessed: 128 bits in Base64."""


class AttemptLimits(NamedTuple):
    pair: Rate = Rate.every(6.0, burst=10)
    network: Rate = Rate.every(1.0, burst=100)
    entity: Rate = Rate.every(2.0, burst=30)
    max_tracked: int = 4096
    """Maximum number of tracked pairs, and likewise of networks and of entities. Beyond it, the
    oldest is dropped."""


class AttemptLimiter:
    def __init__(self, now: Callable[[], float], limits: AttemptLimits | None = None) -> None:
        """`now` returns the monotonic time in seconds."""
        limits = limits or AttemptLimits()
        self._pairs = TokenBuckets(now, limits.pair, limits.max_tracked)
        self._networks = TokenBuckets(now, limits.network, limits.max_tracked)
        self._entities = TokenBuckets(now, limits.entity, limits.max_tracked)

    def check_guessable(self, address: str, entity: str, secret: str) -> None:
        """Raise TooManyAttempts if the secret is short and a budget is used up."""
        if len(secret) < MIN_GENERATED_LENGTH:
            _refuse_for(self._wait_for_pair(network_of(address), entity))

    def record_failure(self, address: str, entity: str) -> None:
        """Record a failed login. Raise TooManyAttempts if too many logins have failed before it."""
        network = network_of(address)
        _refuse_for(max(self._wait_for_pair(network, entity), self._networks.wait(network)))
        self._pairs.take((network, entity))
        self._networks.take(network)
        self._entities.take(entity)

    def record_success(self, address: str, entity: str) -> None:
        self._pairs.refill((network_of(address), entity))

    def _wait_for_pair(self, network: str, entity: str) -> float:
        pair = (network, entity)
        return max(
            self._pairs.wait(pair), self._entities.wait(entity) if pair in self._pairs else 0.0
        )


class SharedAttemptLimiter:
    """Limits failed logins with secrets that name no entity. A correct secret is always
    accepted."""

    def __init__(self, now: Callable[[], float], rate: Rate) -> None:
        self._failures = TokenBuckets(now, rate, 1)

    def record_failure(self) -> None:
        """Record a failed login. Raise TooManyAttempts if too many logins have failed before it."""
        _refuse_for(self._failures.wait(None))
        self._failures.take(None)


def network_of(address: str) -> str:
    """Return the address, or its /64 network for IPv6, because one client may use the whole
    network."""
    family, _, host = address.partition(":")
    if family != "ipv6":
        return address
    try:
        return str(ipaddress.ip_network((host.strip("[]"), 64), strict=False))
    except ValueError:
        return address


def _refuse_for(seconds: float) -> None:
    if seconds > 0:
        raise TooManyAttempts(f"too many failed logins; try again in {max(1.0, seconds):.0f}s")
