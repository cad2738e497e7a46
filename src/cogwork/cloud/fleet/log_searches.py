"""Fair scheduling of searches through logs.

A few searches run at the same time. Organizations take turns, and so do the actors of an
organization. No actor can occupy all slots.
"""

from __future__ import annotations

from typing import Final

from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.storage.log_store import LogPage, LogQuery, LogStore
from cogwork.core.clock import Clock
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits, SlotQueues

_TIMEOUT: Final = 20.0
"""Seconds that a search waits for its turn, longer than the time limit of a search."""
_ALL: Final = ConcurrencyLimits(running=4, waiting=16, timeout=_TIMEOUT)
"""Limits for all searches, with one queue per organization."""
_ORGANIZATION: Final = ConcurrencyLimits(running=2, waiting=16, timeout=_TIMEOUT)
"""Limits within one organization, with one queue per actor."""
_TARGET: Final = "the search through logs"


class LogSearches:
    def __init__(self, logs: LogStore, clock: Clock) -> None:
        self._logs = logs
        self._all = SlotQueues(clock, _ALL)
        self._organizations = SlotQueues(clock, _ORGANIZATION)

    async def read(self, organization: str, actor: Actor, query: LogQuery, now: int) -> LogPage:
        """Search through a log. Raise TooManyCalls, SearchTooSlow or LogsUnavailable."""
        async with (
            self._organizations.hold(organization, str(actor), _TARGET),
            self._all.hold(None, organization, _TARGET),
        ):
            return await self._logs.read(query, now)
