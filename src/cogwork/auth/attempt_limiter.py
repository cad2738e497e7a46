"""Limits failed logins.

A generated secret cannot be guessed, so it is always checked, and a correct one is accepted however
often others have failed. Failures have budgets: of a pair of a network and an entity, so that a
client with an outdated key uses up only its own, and larger ones of the network and of the entity.
When one is spent, a failure is answered with TooManyAttempts instead of Unauthenticated.

A short secret, which someone has made up, can be guessed. It is checked only while there are tokens
in the budget of its pair, and in that of its entity if the network has failed with it before. So
guesses from elsewhere do not lock out an honest client.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final, NamedTuple

from cogwork.auth.errors import TooManyAttempts
from cogwork.core.limits.token_bucket import Rate, TokenBuckets

MIN_GENERATED_LENGTH: Final = 22
"""Characters of the shortest secret that is out of reach of guesses: 128 bits in Base64."""


class AttemptLimits(NamedTuple):
    pair: Rate = Rate.every(6.0, burst=10)
    network: Rate = Rate.every(1.0, burst=100)
    entity: Rate = Rate.every(2.0, burst=30)
    max_tracked: int = 4096
    """Pairs, networks and entities that are remembered, of each. The oldest is forgotten."""


class AttemptLimiter:
    def __init__(self, now: Callable[[], float], limits: AttemptLimits | None = None) -> None:
        """`now` is monotonic, in seconds."""
        limits = limits or AttemptLimits()
        self._pairs = TokenBuckets(now, limits.pair, limits.max_tracked)
        self._networks = TokenBuckets(now, limits.network, limits.max_tracked)
        self._entities = TokenBuckets(now, limits.entity, limits.max_tracked)

    def check_guessable(self, address: str, entity: str, secret: str) -> None:
        """Raise TooManyAttempts if a secret is short and may not be checked."""
        if len(secret) < MIN_GENERATED_LENGTH:
            _refuse_for(self._wait_for_pair(network_of(address), entity))

    def record_failure(self, address: str, entity: str) -> None:
        """Raise TooManyAttempts if too many logins have failed before this one."""
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
    """Limits failures with secrets that name no entity. A correct one is always accepted."""

    def __init__(self, now: Callable[[], float], rate: Rate) -> None:
        self._failures = TokenBuckets(now, rate, 1)

    def record_failure(self) -> None:
        """Raise TooManyAttempts if too many have failed before this one."""
        _refuse_for(self._failures.wait(None))
        self._failures.take(None)


def network_of(address: str) -> str:
    """Return the address, or for IPv6 its network: one client may have all addresses of it."""
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
