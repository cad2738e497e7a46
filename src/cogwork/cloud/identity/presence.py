"""The connected machines, and the times of their last calls."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from viam.gen.app.v1.app_pb2 import OnlineState

from cogwork.cloud.storage.records import Records, Transaction
from cogwork.cloud.storage.tables import MachineRow, PartRow
from cogwork.core.clock import Clock

ONLINE_SECONDS: Final = 25.0
"""A machine without a stream counts as online for this many seconds after its last call. Machines
that poll call every ten seconds."""
RECONNECT_SECONDS: Final = 5.0
"""A machine whose stream has ended counts as online for this many seconds, because it usually
connects again within one or two."""


class LastSeen(NamedTuple):
    state: OnlineState.ValueType
    last_access: int | None
    """Microseconds since 1970; None if the machine has never called."""
    seconds_since: int


class Presence:
    """The presence of parts and machines. Threads may read it while the event loop changes it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[str, int] = {}
        """The time of the last call in microseconds, by the ID of a part or a machine."""
        self._connected: Counter[str] = Counter()
        """The number of open streams, by the ID of a part or a machine."""
        self._disconnected: set[str] = set()
        """Parts and machines whose last stream has ended, and that have not called since."""
        self._unsaved: set[tuple[str, str]] = set()
        """Parts and machines with calls since the last save."""

    def note(self, part: PartRow) -> None:
        """Record a call of a part."""
        now = int(self._clock.time() * 1e6)
        self._seen[part.id] = self._seen[part.machine_id] = now
        self._disconnected -= {part.id, part.machine_id}
        self._unsaved.add((part.id, part.machine_id))

    @contextlib.contextmanager
    def connected(self, part: PartRow) -> Iterator[None]:
        """Count a part as online for the duration of the block."""
        ids = part.id, part.machine_id
        self._connected.update(ids)
        self.note(part)
        try:
            yield
        finally:
            self.note(part)
            self._connected.subtract(ids)
            for each in ids:
                if not self._connected[each]:
                    del self._connected[each]
                    self._disconnected.add(each)

    def list_connected(self) -> list[str]:
        """Return the IDs of parts and machines with an open stream."""
        return list(self._connected)

    def find(self, row: PartRow | MachineRow) -> LastSeen:
        """Return the presence of a part or a machine, given its row."""
        now = int(self._clock.time() * 1e6)
        if row.id in self._connected:
            return LastSeen(OnlineState.ONLINE_STATE_ONLINE, now, 0)
        seen = self._seen.get(row.id) or row.last_access_at
        if seen is None:
            return LastSeen(OnlineState.ONLINE_STATE_AWAITING_SETUP, None, 0)
        seconds = max(0, now - seen) // 1_000_000
        limit = RECONNECT_SECONDS if row.id in self._disconnected else ONLINE_SECONDS
        is_online = seconds <= limit
        state = OnlineState.ONLINE_STATE_ONLINE if is_online else OnlineState.ONLINE_STATE_OFFLINE
        return LastSeen(state, seen, seconds)

    async def save(self, records: Records) -> None:
        """Save the times of the last calls."""
        unsaved, self._unsaved = self._unsaved, set()
        if not unsaved:
            return
        times = [
            (self._seen[part], self._seen[machine], part, machine) for part, machine in unsaved
        ]

        def work(tx: Transaction) -> None:
            for part_time, machine_time, part, machine in times:
                tx.execute("UPDATE part SET last_access_at = ? WHERE id = ?", part_time, part)
                tx.execute(
                    "UPDATE machine SET last_access_at = ? WHERE id = ?", machine_time, machine
                )

        try:
            await records.write(work)
        except BaseException:
            self._unsaved |= unsaved
            raise
