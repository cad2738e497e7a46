"""Checks the free disk space. After a failed write, also checks whether records can be written
again."""

from __future__ import annotations

from typing import Final

from cogwork.cloud.control_plane.health import CloudHealth, StoreState
from cogwork.cloud.control_plane.monitored_stores import RECORDS
from cogwork.cloud.storage.ballast import Ballast
from cogwork.cloud.storage.disk_space import DiskSpace, Space
from cogwork.cloud.storage.records import Records, RecordsUnavailable, Transaction
from cogwork.core.workers import run_in_thread

INTERVAL: Final = 5.0
"""Seconds between two checks."""

DISK: Final = "disk"

_TIMEOUT: Final = 10.0
_RECOVERED: Final = 1.1
"""The problem ends when the free space is above the limit by this factor. Without it, the problem
would come and go."""


async def check_storage(
    disk: DiskSpace, ballast: Ballast, records: Records, health: CloudHealth
) -> None:
    space = await run_in_thread("disk", _TIMEOUT, _measure, disk, ballast)
    _report_space(space, health)
    if health.has_problem(RECORDS):
        await _try_to_write(records)


def _measure(disk: DiskSpace, ballast: Ballast) -> Space:
    space = disk.measure()
    if space.share > 0:
        ballast.restore()
    return space


def _report_space(space: Space, health: CloudHealth) -> None:
    low = 2 * space.reserve * (_RECOVERED if health.has_problem(DISK) else 1)
    if space.free >= low:
        health.recover(DISK)
        return
    effect = (
        "the log quotas of parts shrink with the free space"
        if space.share > 0
        else "logs and packages are refused, and only records are written"
    )
    health.report(
        DISK, StoreState.DEGRADED, f"disk low: {space}; {effect}; free space or use a larger disk"
    )


async def _try_to_write(records: Records) -> None:
    """Write a change without effect. MonitoredRecords reports the success to the health."""

    def work(tx: Transaction) -> None:
        tx.execute(
            "UPDATE organization SET name = name WHERE id = (SELECT MIN(id) FROM organization)"
        )

    try:
        await records.write(work)
    except RecordsUnavailable:
        return
