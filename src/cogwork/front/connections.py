"""Limits the open connections of the public port, and evicts the least used when it is full.

Its only side effect is to close evicted connections. The count is exact: a connection counts from
its admission until it is closed.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol


class ConnectionState(enum.IntEnum):
    """The activity of a connection, from least to most."""

    UNDETECTED = 0
    """The protocol of the connection is not known yet."""
    UNUSED = 1
    """The client has not sent a complete request yet."""
    IDLE = 2
    """All requests of the connection were answered."""
    BUSY = 3


class Connection(Protocol):
    @property
    def host(self) -> str: ...

    @property
    def state(self) -> ConnectionState: ...

    @property
    def last_active(self) -> float:
        """The time of the last activity, in seconds."""

    def close(self) -> None:
        """Close the connection and remove it immediately."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    total: int = 1024
    per_host: int = 960
    """The maximum for one host, which may have many clients. The rest is reserved for other
    hosts."""


DEFAULT_LIMITS = ConnectionLimits()

_RECENT_SECONDS = 1.0
"""Seconds without activity up to which a connection counts as recently active."""
_RANKING_TTL = 0.05
"""Seconds for which a ranking is reused, because computing it takes a millisecond."""


class Connections:
    def __init__(self, clock: Callable[[], float], limits: ConnectionLimits | None = None) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self.limits = limits or ConnectionLimits()
        self._open: dict[Connection, None] = {}
        self._count_by_host = Counter[str]()
        self._ranking: list[Connection] = []
        """Candidates for eviction. The last in the list is evicted first."""
        self._ranked_at = -_RANKING_TTL

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._open)

    def admit(self, connection: Connection, *, urgent: bool = False) -> bool:
        """Add a connection, and evict another connection if necessary. Return False if there is no
        room and no connection can be evicted.

        Idle connections that were active a moment ago are evicted only if `urgent`.
        """
        host = connection.host
        if self._count_by_host[host] >= self.limits.per_host and not self._evict_least_used(
            host, urgent=urgent
        ):
            return False
        if len(self._open) >= self.limits.total and not self._evict_least_used(urgent=urgent):
            return False
        self._open[connection] = None
        self._count_by_host[host] += 1
        return True

    def move(self, connection: Connection, host: str) -> bool:
        """Count an open connection for another host. Return False if that host has too many
        connections.

        The caller must change the `host` of the connection immediately afterwards.
        """
        if self._count_by_host[host] >= self.limits.per_host and not self._evict_least_used(
            host, urgent=False
        ):
            return False
        if connection in self._open:
            self._count_by_host[connection.host] -= 1
            self._count_by_host += Counter()
            self._count_by_host[host] += 1
        return True

    def remove(self, connection: Connection) -> None:
        """Remove a connection; do nothing if it was removed before."""
        if connection in self._open:
            del self._open[connection]
            self._count_by_host[connection.host] -= 1
            self._count_by_host += Counter()

    def _evict_least_used(self, host: str | None = None, *, urgent: bool) -> bool:
        """Close the least used connection of one host or of all hosts. Return False if none may be
        closed."""
        if self._clock() - self._ranked_at >= _RANKING_TTL:
            self._rank()
        for index in reversed(range(len(self._ranking))):
            connection = self._ranking[index]
            if host is not None and connection.host != host:
                continue
            if not urgent and self._is_in_use(connection):
                continue
            del self._ranking[index]
            if connection in self._open and connection.state is not ConnectionState.BUSY:
                connection.close()
                self.remove(connection)
                return True
        return False

    def _is_in_use(self, connection: Connection) -> bool:
        """Return whether a connection is likely to make its next request soon."""
        is_recent = self._clock() - connection.last_active < _RECENT_SECONDS
        return is_recent and connection.state is ConnectionState.IDLE

    def _rank(self) -> None:
        """Rank the candidates for eviction.

        The least used connections are evicted first, and among these the connections of the host
        with the most connections. Recently active connections are evicted last, because new ones
        have had no time to make a request.
        """
        self._ranked_at = now = self._clock()

        def priority(each: Connection) -> tuple[bool, int, int, float]:
            is_new = now - each.last_active < _RECENT_SECONDS
            state = 0 if is_new else each.state
            return is_new, state, -self._count_by_host[each.host], each.last_active

        candidates = [each for each in self._open if each.state is not ConnectionState.BUSY]
        self._ranking = sorted(candidates, key=priority, reverse=True)
