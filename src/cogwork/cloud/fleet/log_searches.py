"""Searches through logs, so that no reader waits for the searches of another.

A few run at the same time. Organizations take turns, and so do the actors of one organization;
no one has all places at once.
"""

from __future__ import annotations

from typing import Final

from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.storage.log_store import LogPage, LogQuery, LogStore
from cogwork.core.clock import Clock
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits, SlotQueues

_TIMEOUT: Final = 20.0
"""Seconds that a search waits for its turn: longer than another may take."""
_ALL: Final = ConcurrencyLimits(running=4, waiting=16, timeout=_TIMEOUT)
"""By organization."""
_ORGANIZATION: Final = ConcurrencyLimits(running=2, waiting=16, timeout=_TIMEOUT)
"""By actor, within one organization."""
_TARGET: Final = "the search through logs"


class LogSearches:
    def __init__(self, logs: LogStore, clock: Clock) -> None:
        self._logs = logs
        self._all = SlotQueues(clock, _ALL)
        self._organizations = SlotQueues(clock, _ORGANIZATION)

    async def read(self, organization: str, actor: Actor, query: LogQuery, now: int) -> LogPage:
        """Raise TooManyCalls, SearchTooSlow or LogsUnavailable."""
        async with (
            self._organizations.hold(organization, str(actor), _TARGET),
            self._all.hold(None, organization, _TARGET),
        ):
            return await self._logs.read(query, now)
