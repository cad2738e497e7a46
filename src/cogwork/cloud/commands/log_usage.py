"""Usage of the log store by machine, as a basis for charges."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple

from cogwork.cloud.fleet.log_losses import LogLoss
from cogwork.cloud.storage.log_store import LogUsage
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query

_MAX_DAYS: Final = 30
_LEFT_ALIGNED: Final = (0, 1, 7)
"""Columns of text in the table. All others are numbers."""


class DayUsage(NamedTuple):
    """The log lines that one part sent on one day."""

    part_id: str
    day: str
    lines: int
    bytes: int
    charged_days: int
    """Number of days so far on which the lines were stored and the part existed."""


class MachineUsage(NamedTuple):
    machine_id: str
    name: str
    organization: str
    deleted_on: str | None
    """The day on which the machine was deleted, and its charges ended."""
    days: Sequence[DayUsage]
    losses: Sequence[LogLoss]

    @property
    def refused(self) -> int:
        """Number of lines in requests that exceeded the quota."""
        return sum(each.refused for each in self.losses)

    @property
    def dropped(self) -> int:
        """Number of lines that the machine has dropped, as reported by it."""
        return sum(each.dropped for each in self.losses)

    @property
    def lines(self) -> int:
        return sum(each.lines for each in self.days)

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.days)

    @property
    def charged_byte_days(self) -> int:
        """Stored bytes, multiplied by the days on which they were stored."""
        return sum(each.bytes * each.charged_days for each in self.days)

    def as_json(self) -> dict[str, Any]:
        return {
            "machine_id": self.machine_id,
            "name": self.name,
            "organization": self.organization,
            "deleted_on": self.deleted_on,
            "lines": self.lines,
            "bytes": self.bytes,
            "charged_byte_days": self.charged_byte_days,
            "refused": self.refused,
            "dropped": self.dropped,
            "days": [each._asdict() for each in self.days],
            "losses": [each._asdict() for each in self.losses],
        }


class UsagePart(NamedTuple):
    """A part with its machine. Either may have been deleted."""

    id: str
    deleted_at: int | None
    machine_id: str
    name: str
    """The name of the machine."""
    machine_deleted_at: int | None
    organization: str
    """The name of the organization."""


def select_parts(tx: Transaction) -> dict[str, UsagePart]:
    """Return all parts by ID, including deleted ones."""
    parts = query(
        tx,
        UsagePart,
        "SELECT part.id, part.deleted_at, machine.id AS machine_id, machine.name, "
        "machine.deleted_at AS machine_deleted_at, organization.name AS organization "
        "FROM part JOIN machine ON machine.id = part.machine_id "
        "JOIN organization ON organization.id = machine.organization_id",
    )
    return {part.id: part for part in parts}


def report_usage(
    stored: Sequence[LogUsage], losses: Sequence[LogLoss], parts: Mapping[str, UsagePart], now: int
) -> list[MachineUsage]:
    """Return the usage of each machine that has stored or lost lines."""
    days: dict[str, list[DayUsage]] = defaultdict(list)
    lost: dict[str, list[LogLoss]] = defaultdict(list)
    machines: dict[str, UsagePart] = {}
    for usage in stored:
        part = parts[usage.part_id]
        machines[part.machine_id] = part
        end = part.deleted_at if part.deleted_at is not None else now
        charged = _count_days(usage.day, end)
        days[part.machine_id].append(
            DayUsage(usage.part_id, usage.day, usage.lines, usage.bytes, charged)
        )
    for loss in losses:
        part = parts[loss.part_id]
        machines[part.machine_id] = part
        lost[part.machine_id].append(loss)
    found = [
        _describe(machine, days[machine_id], lost[machine_id])
        for machine_id, machine in machines.items()
    ]
    return sorted(found, key=lambda each: (each.organization, each.name, each.machine_id))


def format_table(usages: Sequence[MachineUsage]) -> str:
    rows = [
        ("ORGANIZATION", "MACHINE", "LINES", "BYTES", "BYTE-DAYS", "REFUSED", "DROPPED", "DELETED")
    ]
    rows += [
        (
            each.organization,
            each.name,
            f"{each.lines:,}",
            f"{each.bytes:,}",
            f"{each.charged_byte_days:,}",
            f"{each.refused:,}",
            f"{each.dropped:,}",
            each.deleted_on or "",
        )
        for each in usages
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if index in _LEFT_ALIGNED else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _describe(machine: UsagePart, days: list[DayUsage], losses: list[LogLoss]) -> MachineUsage:
    deleted_at = machine.machine_deleted_at
    return MachineUsage(
        machine.machine_id,
        machine.name,
        machine.organization,
        _date_of(deleted_at).isoformat() if deleted_at is not None else None,
        days,
        losses,
    )


def _count_days(day: str, end: int) -> int:
    """Return the number of days between two days, both included."""
    count = (_date_of(end) - date.fromisoformat(day)).days + 1
    return min(max(count, 0), _MAX_DAYS)


def _date_of(microseconds: int) -> date:
    return datetime.fromtimestamp(microseconds // 1_000_000, UTC).date()
