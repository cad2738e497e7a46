"""Backpressure for clients that leave many replies unread: their next calls wait."""

from __future__ import annotations

import asyncio

from cogwork.core.errors import CogworkError
from cogwork.core.limits.held_amounts import HeldAmounts

_MIB = 1 << 20


class RepliesNotRead(CogworkError):
    status = "RESOURCE_EXHAUSTED"


class UnreadReplies:
    def __init__(
        self,
        total: int = 16 * _MIB,
        per_client: int = 16 * _MIB,
        slack: int = _MIB // 4,
        timeout: float = 10.0,
        max_waiting: int = 32,
    ) -> None:
        """Set the limits, in bytes.

        `total` limits the unread bytes of all clients together, and `per_client` the unread bytes
        of one client. `slack` is the amount that a client may leave unread even if the total is
        reached. A call waits `timeout` seconds for its client to read. At most `max_waiting` calls
        of a client wait.
        """
        self._total = total
        self._per_client = per_client
        self._slack = slack
        self._timeout = timeout
        self._held = HeldAmounts()
        self._max_waiting = max_waiting
        self._waiting: dict[asyncio.Future[None], str] = {}

    def add(self, client: str, size: int) -> None:
        self._held.hold(client, size)

    def remove(self, client: str, size: int) -> None:
        self._held.release(client, size)
        for waiting in tuple(self._waiting):
            if not waiting.done():
                waiting.set_result(None)

    @property
    def is_within_slack(self) -> bool:
        """Whether the unread bytes of all clients together are below `slack`, so that no client is
        behind."""
        return self._held.total < self._slack

    def is_behind(self, client: str) -> bool:
        """Return whether a client must read replies before it may make further calls."""
        held = self._held.of(client)
        return held >= self._per_client or (self._held.total >= self._total and held >= self._slack)

    async def wait_until_read(self, client: str) -> None:
        """Wait until the client has read enough. Raise RepliesNotRead on timeout."""
        if list(self._waiting.values()).count(client) >= self._max_waiting:
            raise self._not_read_error(client)
        try:
            async with asyncio.timeout(self._timeout):
                while self.is_behind(client):
                    await self._wait_for_change(client)
        except TimeoutError:
            raise self._not_read_error(client) from None

    async def _wait_for_change(self, client: str) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = client
        try:
            await waiting
        finally:
            del self._waiting[waiting]

    def _not_read_error(self, client: str) -> RepliesNotRead:
        held = self._held.of(client)
        return RepliesNotRead(f"{held} bytes of replies are unread; read them first")
