"""Labels in real records, and the migration of records that have none."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cloud.old_records import create_old_records

from cogwork.cloud.fleet.host_labels import (
    assign_label,
    find_labeled_part,
    list_aliases,
    retire_label,
)
from cogwork.cloud.storage.part_labels import label_parts
from cogwork.cloud.storage.records import DuplicateRecord, Transaction
from cogwork.cloud.storage.schema import MIGRATIONS
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.cloud.storage.tables import HostLabelRow

DAY = 24 * 3600 * 1_000_000
PLACES = """
INSERT INTO organization (id, name, created_at) VALUES ('acme', 'Acme', 0);
INSERT INTO location (id, organization_id, name, created_at) VALUES
    ('hall', 'acme', 'Hall', 0), ('yard', 'acme', 'Yard', 0);
INSERT INTO machine (id, organization_id, location_id, name, created_at) VALUES
    ('in hall', 'acme', 'hall', 'm', 0), ('in yard', 'acme', 'yard', 'm', 0);
"""
PART = (
    "INSERT INTO part (id, organization_id, machine_id, name, is_main, config, revision, "
    "created_at, updated_at) VALUES (?, 'acme', ?, ?, 1, '{}', 0, ?, 0)"
)


class Labels:
    def __init__(self, records: SqliteRecords) -> None:
        self.records = records

    async def assign(self, part: str, name: str, location: str = "hall", now: int = 0) -> str:
        """Return the label."""

        def work(tx: Transaction) -> str:
            assign_label(tx, now, part, location, name)
            (row,) = select(tx, HostLabelRow, "WHERE part_id = ? AND until IS NULL", part)
            assert row.location_id == location
            return row.label

        return await self.records.write(work)

    async def find(self, label: str, location: str = "hall", now: int = 0) -> str | None:
        return await self.records.read(lambda tx: find_labeled_part(tx, now, location, label))


@pytest.fixture
async def labels(tmp_path: Path) -> AsyncIterator[Labels]:
    (tmp_path / "records.db").touch()
    records = SqliteRecords(tmp_path / "records.db")

    def fill(tx: Transaction) -> None:
        for statement in PLACES.strip().split(";\n"):
            tx.execute(statement.rstrip(";"))
        for part in "abc":
            tx.execute(PART, part, "in hall", part, 0)

    await records.write(fill)
    yield Labels(records)
    await records.aclose()


async def test_label_belongs_to_the_first_part_that_got_it(labels: Labels) -> None:
    assert await labels.assign("a", "Press") == "press"
    other = await labels.assign("b", "press")
    assert re.fullmatch("press-[a-z2-7]{6}", other)
    # Another part takes the name that this one would get.
    assert await labels.assign("b", "saw") == "saw"
    await labels.assign("c", other, now=181 * DAY)
    third = await labels.assign("b", "press", now=181 * DAY)
    assert third not in ("press", other)
    assert await labels.assign("c", "press", "yard", now=181 * DAY) == "press"
    assert await labels.find("press", now=181 * DAY) == "a"


async def test_former_label_is_an_alias_for_90_days_and_reserved_for_180(labels: Labels) -> None:
    await labels.assign("a", "press")
    assert await labels.assign("a", "saw") == "saw"
    assert await labels.find("press", now=89 * DAY) == "a"
    assert await labels.find("press", now=91 * DAY) is None
    # A certificate of the last day of the alias is valid for 90 more.
    assert await labels.assign("b", "press", now=179 * DAY) != "press"
    assert await labels.assign("b", "x", now=179 * DAY) == "x"
    assert await labels.assign("b", "press", now=181 * DAY) == "press"
    assert await labels.find("press", now=181 * DAY) == "b"
    assert await labels.find("saw", now=181 * DAY) == "a"


async def test_part_gets_its_alias_back(labels: Labels) -> None:
    await labels.assign("a", "press")
    await labels.assign("a", "saw")
    assert await labels.assign("a", "press") == "press"
    assert await labels.assign("a", "PRESS") == "press"
    aliases = await labels.records.read(lambda tx: list_aliases(tx, 0, "a"))
    assert [(row.location_id, row.label) for row in aliases] == [("hall", "saw")]
    for number in range(40):
        await labels.assign("a", f"n{number}", now=number)
    aliases = await labels.records.read(lambda tx: list_aliases(tx, 0, "a"))
    assert [row.label for row in aliases] == [f"n{number}" for number in range(38, 28, -1)]


async def test_moved_and_deleted_parts_keep_others_out(labels: Labels) -> None:
    await labels.assign("a", "press")
    assert await labels.assign("a", "press", "yard") == "press"
    assert await labels.find("press", "hall") == await labels.find("press", "yard") == "a"
    assert await labels.assign("b", "press") != "press"
    await labels.records.write(lambda tx: retire_label(tx, 0, "a"))
    assert await labels.assign("c", "press", "yard") != "press"


@pytest.mark.parametrize("values", [("hall", "press", "b", None), ("yard", "other", "a", None)])
async def test_database_refuses_two_parts_and_two_labels(
    labels: Labels, values: tuple[str, str, str, None]
) -> None:
    await labels.assign("a", "press")
    with pytest.raises(DuplicateRecord):
        await labels.records.write(
            lambda tx: tx.execute("INSERT INTO host_label VALUES (?, ?, ?, ?)", *values)
        )


def make_unlabeled(path: Path) -> None:
    """Make the records of a version that has no labels."""
    version = MIGRATIONS.index(label_parts) - 1
    with create_old_records(path, version) as connection:
        connection.executescript(PLACES)
        connection.executemany(PART, PARTS)
        connection.execute("UPDATE part SET deleted_at = 9 WHERE id = 'deleted'")


PARTS = [
    ("young", "in hall", "Press", 2),
    ("old", "in hall", "press", 1),
    ("elsewhere", "in yard", "press", 3),
    ("one", "in hall", "机器人一-main", 4),
    ("two", "in hall", "机器人二-main", 5),
    ("long", "in hall", "x" * 60, 6),
    ("deleted", "in hall", "gone", 7),
]


async def test_migration_labels_the_oldest_part_first(tmp_path: Path) -> None:
    make_unlabeled(tmp_path / "records.db")
    for _ in range(2):
        records = SqliteRecords(tmp_path / "records.db")
        rows = await records.read(lambda tx: select(tx, HostLabelRow))
        await records.aclose()
        found = {row.part_id: row.label for row in rows}
        assert found.keys() == {part for part, *_ in PARTS} - {"deleted"}
        assert all(row.until is None for row in rows)
        # Names that programs know stay as they were, as long as they are not those of two.
        assert found["old"] == found["elsewhere"] == "press"
        assert found["one"] == "main"
        assert found["long"] == "x" * 60
        assert re.fullmatch("press-[a-z2-7]{6}", found["young"])
        assert re.fullmatch("main-[a-z2-7]{6}", found["two"])


async def test_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.db"
    make_unlabeled(path)

    def fail(tx: Transaction) -> None:
        label_parts(tx)
        raise OSError("the power failed")

    steps = [fail if step is label_parts else step for step in MIGRATIONS]
    with monkeypatch.context() as patch:
        patch.setattr("cogwork.cloud.storage.sqlite_records.MIGRATIONS", steps)
        with pytest.raises(OSError, match="the power failed"):
            SqliteRecords(path)
    records = SqliteRecords(path)
    rows = await records.read(lambda tx: select(tx, HostLabelRow))
    await records.aclose()
    assert len(rows) == len(PARTS) - 1
