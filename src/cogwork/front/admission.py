"""Admits connections to the public port, and queues further connections briefly when it is full."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from cogwork.front.accepted_connection import AcceptedConnection
from cogwork.front.connections import Connections

_MAX_PARKED = 1024
_PARK_TIMEOUT = 1.0
"""Seconds that a connection waits for a free slot before it is refused."""
_URGENT_AFTER = 0.4
"""Seconds in the queue after which a connection may evict recently used, idle connections."""
_PARK_RETRY_INTERVAL = 0.02
"""Seconds between two attempts to admit waiting connections."""

_log = logging.getLogger("rdk.networking")


class ConnectionAdmission:
    def __init__(
        self, connections: Connections, on_admitted: Callable[[AcceptedConnection], None]
    ) -> None:
        self._connections = connections
        self._on_admitted = on_admitted
        self._parked: list[AcceptedConnection] = []
        """The connections that wait for a free slot."""
        self._refused_count = 0

    def add(self, connection: AcceptedConnection) -> None:
        """Admit a connection, queue it until a slot is free, or refuse it."""
        if not self._admit(connection):
            self._park(connection)

    def close(self) -> None:
        """Close the queued connections."""
        while self._parked:
            self._parked.pop().close()

    def _admit(self, connection: AcceptedConnection, *, urgent: bool = False) -> bool:
        is_admitted = self._connections.admit(connection, urgent=urgent)
        if is_admitted:
            self._on_admitted(connection)
        return is_admitted

    def _park(self, connection: AcceptedConnection) -> None:
        """Queue a connection, because one of the busy connections may become idle soon."""
        if len(self._parked) >= _MAX_PARKED:
            self._refuse(connection)
            return
        self._parked.append(connection)
        if len(self._parked) == 1:
            asyncio.get_running_loop().call_later(_PARK_RETRY_INTERVAL, self._retry_parked)

    def _retry_parked(self) -> None:
        parked, self._parked = self._parked, []
        now = time.monotonic()
        full = set[str]()
        for connection in parked:
            waited = now - connection.last_active
            if connection.host not in full and self._admit(
                connection, urgent=waited >= _URGENT_AFTER
            ):
                continue
            full.add(connection.host)
            if waited >= _PARK_TIMEOUT:
                self._refuse(connection)
            else:
                self._parked.append(connection)
        if self._parked:
            asyncio.get_running_loop().call_later(_PARK_RETRY_INTERVAL, self._retry_parked)

    def _refuse(self, connection: AcceptedConnection) -> None:
        connection.close()
        self._refused_count += 1
        if self._refused_count.bit_count() == 1:
            _log.warning(
                "refused a connection from %s: too many are open, %d in total (%d refused so far)",
                connection.host,
                len(self._connections),
                self._refused_count,
            )
