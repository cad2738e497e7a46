"""The contract of the cloud's records, for every engine that stores them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.machine.running import DEADLINE

from cogwork.cloud.storage.records import (
    BrokenReference,
    DuplicateRecord,
    Records,
    RecordsUnavailable,
    Transaction,
)
from cogwork.cloud.storage.select import query_values, select
from cogwork.cloud.storage.sqlite_records import SqliteRecords
from cogwork.cloud.storage.tables import OrganizationRow
from cogwork.core.errors import NotFound

INSERT = "INSERT INTO organization (id, name, created_at) VALUES (?, ?, ?)"


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Records]:
    found = SqliteRecords(make_file(tmp_path))
    yield found
    await found.aclose()


def make_file(directory: Path) -> Path:
    path = directory / "cloud.db"
    path.touch()
    return path


def add(tx: Transaction, key: str, name: str = "acme", at: int = 0) -> None:
    assert tx.execute(INSERT, key, name, at) == 1


async def add_all(records: Records, keys: str) -> None:
    for key in keys:
        await records.write(lambda tx, key=key: add(tx, key))  # type: ignore[misc]


def names(tx: Transaction) -> list[str]:
    return query_values(tx, str, "SELECT name FROM organization ORDER BY id")


async def test_what_was_written_is_read(records: Records) -> None:
    name = "Ünïcode 日本 \N{PILE OF POO} ' \" ; --"
    await records.write(lambda tx: add(tx, "1", name, 2**53 + 1))
    (row,) = await records.read(lambda tx: select(tx, OrganizationRow))
    assert (row.id, row.name, row.created_at) == ("1", name, 2**53 + 1)
    assert row.namespace is None


async def test_failed_work_changes_nothing(records: Records) -> None:
    def work(tx: Transaction) -> None:
        add(tx, "1")
        assert names(tx) == ["acme"]
        raise NotFound("no")

    with pytest.raises(NotFound, match="no"):
        await records.write(work)
    assert await records.read(names) == []


async def test_what_follows_from_a_write_is_done_even_if_its_caller_is_gone(
    records: Records,
) -> None:
    begun, may_end, done = threading.Event(), threading.Event(), asyncio.Event()
    seen: list[str] = []

    def work(tx: Transaction) -> str:
        add(tx, "1")
        begun.set()
        may_end.wait(DEADLINE)
        return "result"

    def follow(result: str) -> None:
        seen.append(result)
        done.set()

    writing = asyncio.create_task(records.write(work, follow))
    await asyncio.to_thread(begun.wait, DEADLINE)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    may_end.set()
    await asyncio.wait_for(done.wait(), DEADLINE)
    assert seen == ["result"]
    assert await records.read(names) == ["acme"]


async def test_duplicate_is_an_error_of_its_own(records: Records) -> None:
    await records.write(lambda tx: add(tx, "1"))
    with pytest.raises(DuplicateRecord):
        await records.write(lambda tx: add(tx, "1"))
    assert await records.read(names) == ["acme"]


async def test_execute_returns_the_number_of_changed_rows(records: Records) -> None:
    await add_all(records, "012")
    update = "UPDATE organization SET name = ? WHERE id > ?"
    assert await records.write(lambda tx: tx.execute(update, "b", "0")) == 2


async def test_reads_cannot_write(records: Records) -> None:
    with pytest.raises(RecordsUnavailable):
        await records.read(lambda tx: add(tx, "1"))
    assert await records.read(names) == []


async def test_concurrent_writes_run_one_after_the_other(records: Records) -> None:
    await records.write(lambda tx: add(tx, "counter", at=0))

    def count(tx: Transaction) -> int:
        (row,) = select(tx, OrganizationRow, "WHERE id = 'counter'")
        tx.execute("UPDATE organization SET created_at = ?", row.created_at + 1)
        return row.created_at

    seen = await asyncio.gather(*(records.write(count) for _ in range(200)))
    assert sorted(seen) == [*range(200)]


async def test_reads_see_whole_transactions(records: Records) -> None:
    """Two rows change together; no reader sees one of them changed."""
    await add_all(records, "ab")
    seen: set[tuple[str, ...]] = set()

    async def read() -> None:
        for _ in range(50):
            seen.add(tuple(await records.read(names)))

    async def write() -> None:
        for number in range(50):
            await records.write(
                lambda tx, n=number: tx.execute(  # type: ignore[misc]
                    "UPDATE organization SET name = ?", str(n)
                )
            )

    await asyncio.gather(read(), read(), write())
    assert all(first == second for first, second in seen)


async def test_references_must_exist(records: Records) -> None:
    insert = (
        "INSERT INTO location (id, organization_id, name, created_at) VALUES ('l', 'gone', 'x', 0)"
    )
    with pytest.raises(BrokenReference):
        await records.write(lambda tx: tx.execute(insert))


async def test_records_survive_a_restart(tmp_path: Path) -> None:
    path = make_file(tmp_path)
    for number in itertools.count():
        records = SqliteRecords(path)
        assert await records.read(names) == ["acme"] * number
        await records.write(lambda tx, n=number: add(tx, str(n)))  # type: ignore[misc]
        await records.aclose()
        if number == 2:
            break


async def test_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = make_file(tmp_path)
    records = SqliteRecords(path)
    await records.write(lambda tx: tx.execute("PRAGMA user_version = 99"))
    await records.aclose()
    with pytest.raises(RecordsUnavailable, match="newer version"):
        SqliteRecords(path)


def test_missing_file_is_a_fault(tmp_path: Path) -> None:
    """A cloud without its records would refuse every machine."""
    with pytest.raises(RecordsUnavailable, match="unable to open"):
        SqliteRecords(tmp_path / "cloud.db")
    assert not (tmp_path / "cloud.db").exists()
