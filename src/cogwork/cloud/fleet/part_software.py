"""The software of parts and their updates, as reported by their agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from viam.gen.app.agent.v1 import agent_pb2 as pb

from cogwork.cloud.operations.operation import to_microseconds
from cogwork.cloud.storage.insert import upsert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select, select_one
from cogwork.cloud.storage.tables import PartSoftwareRow, UpdateReportRow
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import UpdateReport

_MAX_LENGTH: Final = 100
_START_TOLERANCE: Final = 60_000_000
"""Microseconds by which two computed start times of the same process may differ."""


@dataclass(frozen=True, slots=True)
class Software:
    """The state of a product on a machine."""

    running: str = ""
    """The running version; empty if none runs."""
    installed: str = ""
    """The installed version, which runs after a restart."""
    started_at: int | None = None
    """The start time in microseconds since 1970, computed from the uptime."""
    platform: str = ""
    """Such as `linux/amd64`; empty if unknown."""
    distribution: str = ""
    """Such as `debian:12`; empty if unknown."""

    @property
    def current(self) -> str:
        return self.running or self.installed


def read_software(
    request: pb.DeviceAgentConfigRequest, product: Product, platform: str, now: int
) -> Software:
    """Return an agent's report on a product. `platform` is used if the report has none."""
    versions, host = request.version_info, request.host_info
    is_agent = product is Product.AGENT
    uptime = request.agent_uptime if is_agent else request.viam_server_uptime
    is_running = 0 < uptime.seconds < now // 1_000_000
    return Software(
        (versions.agent_running if is_agent else versions.viam_server_running)[:_MAX_LENGTH],
        (versions.agent_installed if is_agent else versions.viam_server_installed)[:_MAX_LENGTH],
        now - uptime.seconds * 1_000_000 if is_running else None,
        (host.platform or platform)[:_MAX_LENGTH],
        host.distro[:_MAX_LENGTH],
    )


def is_saved(
    tx: Transaction, part_id: str, product: Product, now: Software, hindrance: str
) -> bool:
    """Return whether the records have the same state. Start times may differ slightly."""
    row = select_one(tx, PartSoftwareRow, "WHERE part_id = ? AND product = ?", part_id, product)
    if row is None or row.hindrance != hindrance:
        return False
    known = _from_row(row)
    return (known.running, known.installed, known.platform, known.distribution) == (
        *(now.running, now.installed, now.platform, now.distribution),
    ) and _is_same_start(known.started_at, now.started_at)


def save_software(
    tx: Transaction, part_id: str, product: Product, software: Software, hindrance: str, now: int
) -> None:
    """Save the state. `hindrance` is the reason why the part does not get its intended version."""
    row = PartSoftwareRow(
        part_id=part_id,
        product=product,
        running=software.running,
        installed=software.installed,
        started_at=software.started_at,
        platform=software.platform,
        distribution=software.distribution,
        hindrance=hindrance,
        changed_at=now,
    )
    upsert(tx, row, "part_id", "product")


def save_report(tx: Transaction, part_id: str, report: UpdateReport, now: int) -> None:
    """Store the last report of a part for each product."""
    row = UpdateReportRow(
        part_id=part_id,
        product=report.product,
        version=report.version,
        outcome=report.outcome,
        reason=report.reason,
        since=to_microseconds(report.since),
        reported_at=now,
    )
    upsert(tx, row, "part_id", "product")


def describe_software(tx: Transaction, part_id: str) -> dict[str, Any]:
    """Return the state of each product of a part as JSON; empty without an agent."""
    found: dict[str, Any] = {}
    for row in select(tx, PartSoftwareRow, "WHERE part_id = ?", part_id):
        found[row.product] = {
            "running": row.running,
            "installed": row.installed,
            "platform": row.platform,
            "hindrance": row.hindrance,
        }
    for report in select(tx, UpdateReportRow, "WHERE part_id = ?", part_id):
        found.setdefault(report.product, {})["last_report"] = {
            "version": report.version,
            "outcome": report.outcome,
            "reason": report.reason,
            "reported_at": report.reported_at / 1e6,
        }
    return found


def _is_same_start(one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _START_TOLERANCE


def _from_row(row: PartSoftwareRow) -> Software:
    return Software(
        *(row.running, row.installed, row.started_at),
        *(row.platform, row.distribution),
    )
