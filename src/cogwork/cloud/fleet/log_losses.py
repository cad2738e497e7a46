"""Counts lost log lines: lines that the cloud refused, and lines that machines dropped.

Both are counted separately: a machine sends refused lines again, or drops them and reports the
number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.storage.log_store import RETENTION, day_of
from cogwork.cloud.storage.records import Records, Transaction
from cogwork.cloud.storage.select import query, select
from cogwork.core.clock import Clock
from cogwork.logs.spool import LOGGER
from cogwork.logs.upload import DROPPED

_MAX_DROPPED: Final = 1 << 40
"""Upper limit for the reported number, because a machine may report anything."""


class LogLoss(NamedTuple):
    """The lines of one part that were lost on one day."""

    part_id: str
    day: str
    refused: int
    """Lines in requests that exceeded the quota. A line may be refused several times."""
    dropped: int
    """Lines that the machine has dropped for any reason, as reported by it."""


class LogLosses:
    """Counters of lost lines. Only the event loop may use them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[tuple[str, str], int] = defaultdict(int)
        self._dropped: dict[tuple[str, str], int] = defaultdict(int)
        """Number of dropped lines by part and day, since the last save. `_refused` counts refused
        lines in the same way."""

    def note_refused(self, part: str, lines: int) -> None:
        self._refused[part, self._today()] += lines

    def note_dropped(self, part: str, entries: Iterable[LogEntry]) -> None:
        """Count the dropped lines that a machine reports in its log."""
        if dropped := sum(map(_count_dropped, entries)):
            self._dropped[part, self._today()] += min(dropped, _MAX_DROPPED)

    async def save(self, records: Records) -> None:
        refused, self._refused = self._refused, defaultdict(int)
        dropped, self._dropped = self._dropped, defaultdict(int)
        if not refused and not dropped:
            return
        losses = [
            LogLoss(*key, refused.get(key, 0), dropped.get(key, 0))
            for key in {**refused, **dropped}
        ]
        oldest = day_of(int(self._clock.time() * 1e6) - RETENTION)
        try:
            await records.write(lambda tx: _save(tx, losses, oldest))
        except BaseException:
            for each in losses:
                self._refused[each.part_id, each.day] += each.refused
                self._dropped[each.part_id, each.day] += each.dropped
            raise

    def _today(self) -> str:
        return day_of(int(self._clock.time() * 1e6))


def list_losses(tx: Transaction) -> list[LogLoss]:
    return select(tx, LogLoss, "ORDER BY part_id, day")


class _Sums(NamedTuple):
    """Sums over all rows of a part; None if the part has no rows."""

    refused: int | None
    dropped: int | None


def describe_losses(tx: Transaction, part: str) -> dict[str, Any]:
    """Return the sums of the last 30 days; an empty object if no line was lost."""
    (sums,) = query(
        tx,
        _Sums,
        "SELECT SUM(refused) AS refused, SUM(dropped) AS dropped FROM log_loss WHERE part_id = ?",
        part,
    )
    found = {"refused_lines": sums.refused or 0, "dropped_lines": sums.dropped or 0}
    return found if any(found.values()) else {}


def _save(tx: Transaction, losses: Sequence[LogLoss], oldest: str) -> None:
    for each in losses:
        tx.execute(
            "INSERT INTO log_loss (part_id, day, refused, dropped) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (part_id, day) DO UPDATE SET refused = log_loss.refused + "
            "excluded.refused, dropped = log_loss.dropped + excluded.dropped",
            *each,
        )
    tx.execute("DELETE FROM log_loss WHERE day < ?", oldest)


def _count_dropped(entry: LogEntry) -> int:
    """Return the number of dropped lines that an entry reports."""
    if entry.logger_name != LOGGER:
        return 0
    for each in entry.fields:
        value = each.fields[DROPPED].number_value if DROPPED in each.fields else 0.0
        if 0 < value <= _MAX_DROPPED:
            return int(value)
    return 0
