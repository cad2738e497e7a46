"""The state of the disk in the health of a cloud, with real records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cogwork.cloud.control_plane.health import CloudHealth, StoreState
from cogwork.cloud.control_plane.monitored_stores import RECORDS, MonitoredRecords
from cogwork.cloud.control_plane.storage_check import check_storage
from cogwork.cloud.storage.ballast import Ballast
from cogwork.cloud.storage.disk_space import DiskSpace, Space
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.core.clock import ManualClock

MIB = 1 << 20


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[SqliteRecords]:
    (tmp_path / "records.db").touch()
    opened = SqliteRecords(tmp_path / "records.db")
    yield opened
    await opened.aclose()


async def test_low_disk_is_shown_until_clearly_more_is_free(
    tmp_path: Path, records: SqliteRecords
) -> None:
    free = 1000
    disk = DiskSpace(tmp_path, lambda _: Space(1000 * MIB, free * MIB))
    ballast, health = Ballast(tmp_path / "ballast", MIB), CloudHealth(ManualClock())

    async def check() -> str:
        await check_storage(disk, ballast, records, health)
        problems = health.as_json()["problems"]
        return str(problems[0]["reason"]) if problems else ""

    assert await check() == ""
    assert (tmp_path / "ballast").exists()
    free = 199
    assert "the log quotas of parts shrink" in await check()
    assert health.state is StoreState.DEGRADED
    free = 99
    assert "logs and packages are refused" in await check()
    assert ballast.release()
    await check()
    assert not (tmp_path / "ballast").exists(), "there is no space for it"
    free = 210
    assert "the log quotas of parts shrink" in await check()
    free = 230
    assert await check() == ""
    assert (tmp_path / "ballast").exists()


async def test_failed_write_is_tried_again(tmp_path: Path, records: SqliteRecords) -> None:
    health = CloudHealth(ManualClock())
    disk = DiskSpace(tmp_path, lambda _: Space(1000 * MIB, 900 * MIB))
    monitored = MonitoredRecords(records, health)
    health.report(RECORDS, StoreState.FAILING, "the disk was full")
    await check_storage(disk, Ballast(tmp_path / "ballast", MIB), monitored, health)
    assert health.state is StoreState.OK
