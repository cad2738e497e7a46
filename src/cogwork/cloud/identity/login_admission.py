"""Limits the number of concurrent logins, with fair turns for networks.

Every login is checked, so many logins of one network must not delay the logins of others.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from cogwork.auth.attempt_limiter import network_of
from cogwork.core.clock import Clock
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits, SlotQueue, TooManyCalls

_LIMITS: Final = ConcurrencyLimits(running=8, waiting=2048, timeout=10.0)


class LoginAdmission:
    def __init__(self, clock: Clock, limits: ConcurrencyLimits = _LIMITS) -> None:
        self._clock = clock
        self._slots = SlotQueue(limits)

    @contextlib.asynccontextmanager
    async def slot(self, address: str) -> AsyncIterator[None]:
        """Wait for a slot for a network. Raise TooManyCalls on timeout."""
        network = network_of(address)
        if not self._slots.try_acquire(network):
            await self._wait(network)
        try:
            yield
        finally:
            self._slots.release(network)

    async def _wait(self, network: str) -> None:
        turn = self._slots.enqueue(network)
        if turn is None or not await self._slots.wait_for_turn(network, turn, self._clock):
            raise TooManyCalls("too many logins at once from your network; try again in a moment")
