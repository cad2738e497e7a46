"""Records that an earlier version has written."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.schema import MIGRATIONS
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.cloud.storage.tables import OrganizationRow

RELEASED = 5
"""Scripts of 0.1.0."""


async def test_oldest_organization_hosts_a_cloud_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for script in MIGRATIONS[:RELEASED]:
            assert isinstance(script, str)
            connection.executescript(script)
        connection.executescript(
            f"INSERT INTO organization (id, name, created_at) VALUES ('b', 'Later', 8), "
            f"('c', 'First', 7), ('a', 'Last', 9); PRAGMA user_version = {RELEASED};"
        )

    def find_hosts(tx: Transaction) -> list[str]:
        return [each.name for each in select(tx, OrganizationRow, "WHERE is_hosting")]

    records = SqliteRecords(path)
    try:
        assert await records.read(find_hosts) == ["First"]
    finally:
        await records.aclose()
