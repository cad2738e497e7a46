"""Rows are stored as they are read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cogwork.cloud.storage.insert import insert, upsert
from cogwork.cloud.storage.records import BrokenReference, DuplicateRecord, Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import read_records, write_records
from cogwork.cloud.storage.tables import LocationRow, OrganizationRow

ACME = OrganizationRow("a", "Acme", None, 7, is_hosting=True)
HALL = LocationRow(id="h", organization_id="a", parent_id=None, name="Hall", created_at=8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "records.db"
    found.touch()
    write_records(found, lambda tx: insert(tx, ACME))
    return found


def read(path: Path) -> list[OrganizationRow]:
    return read_records(path, lambda tx: select(tx, OrganizationRow, "ORDER BY id"))


def test_a_row_is_read_as_it_was_stored(path: Path) -> None:
    other = OrganizationRow("b", "'; --", "other", 2**53, is_hosting=False)
    write_records(path, lambda tx: insert(tx, other))
    assert read(path) == [ACME, other]


def test_a_row_is_stored_once(path: Path) -> None:
    with pytest.raises(DuplicateRecord):
        write_records(path, lambda tx: insert(tx, ACME))
    with pytest.raises(BrokenReference):
        write_records(path, lambda tx: insert(tx, replace(HALL, organization_id="none")))


def test_a_row_takes_the_place_of_the_one_with_its_key(path: Path) -> None:
    renamed = replace(ACME, name="Other", is_hosting=False)

    def work(tx: Transaction) -> None:
        upsert(tx, renamed, "id")
        upsert(tx, HALL, "id")

    write_records(path, work)
    assert read(path) == [renamed]
    assert read_records(path, lambda tx: select(tx, LocationRow)) == [HALL]
