"""Records that an earlier version has written."""

from __future__ import annotations

from pathlib import Path

from tests.support.cloud.old_records import create_old_records

from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.cloud.storage.tables import OrganizationRow


async def test_oldest_organization_hosts_a_cloud_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "records.db"
    with create_old_records(path) as connection:
        connection.execute(
            "INSERT INTO organization (id, name, created_at) VALUES ('b', 'Later', 8), "
            "('c', 'First', 7), ('a', 'Last', 9)"
        )

    def find_hosts(tx: Transaction) -> list[str]:
        return [each.name for each in select(tx, OrganizationRow, "WHERE is_hosting")]

    records = SqliteRecords(path)
    try:
        assert await records.read(find_hosts) == ["First"]
    finally:
        await records.aclose()
