"""Rows as values with named and typed fields."""

from __future__ import annotations

import enum
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import (
    ShapeMismatch,
    exists,
    query,
    query_values,
    select,
    select_one,
)
from cogwork.cloud.storage.sqlite_records import read_records, write_records
from cogwork.cloud.storage.tables import LocationRow, OrganizationRow


class Kind(enum.StrEnum):
    ACME = "Acme"


class Counted(NamedTuple):
    organization: Kind
    locations: int


@dataclass(frozen=True, slots=True)
class OwnedLocation(LocationRow):
    organization_name: str


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "records.db"
    found.touch()

    def fill(tx: Transaction) -> None:
        tx.execute(
            "INSERT INTO organization (id, name, created_at, is_hosting) VALUES ('a', 'Acme', 7, 1)"
        )
        for number in range(3):
            tx.execute(
                "INSERT INTO location (id, organization_id, parent_id, name, created_at) "
                "VALUES (?, 'a', ?, 'Hall', ?)",
                *(f"{number}", f"{number - 1}" if number else None, number),
            )

    write_records(found, fill)
    return found


def test_rows_of_a_table_have_its_columns(path: Path) -> None:
    found = read_records(path, lambda tx: select(tx, OrganizationRow))
    assert found == [OrganizationRow("a", "Acme", None, 7, is_hosting=True)]
    found_again = read_records(
        path, lambda tx: select_one(tx, OrganizationRow, "WHERE id = ?", "a")
    )
    assert found_again == found[0]
    assert (
        read_records(path, lambda tx: select_one(tx, OrganizationRow, "WHERE id = ?", "b")) is None
    )


def test_what_follows_the_table_may_have_joins(path: Path) -> None:
    rest = (
        "JOIN organization ON organization.id = location.organization_id "
        "WHERE organization.name = ? ORDER BY location.id DESC LIMIT 2"
    )
    found = read_records(path, lambda tx: select(tx, LocationRow, rest, "Acme"))
    assert [(each.id, each.parent_id) for each in found] == [("2", "1"), ("1", "0")]


def test_a_query_has_a_shape_of_its_own(path: Path) -> None:
    sql = (
        "SELECT COUNT(*) AS locations, organization.name AS organization FROM location "
        "JOIN organization ON organization.id = location.organization_id"
    )
    (found,) = read_records(path, lambda tx: query(tx, Counted, sql))
    assert found == Counted(Kind.ACME, 3)
    assert type(found.organization) is Kind


def test_a_shape_may_extend_that_of_a_table(path: Path) -> None:
    sql = (
        "SELECT location.*, organization.name AS organization_name FROM location "
        "JOIN organization ON organization.id = location.organization_id WHERE location.id = '1'"
    )
    (found,) = read_records(path, lambda tx: query(tx, OwnedLocation, sql))
    assert found == OwnedLocation(
        id="1",
        organization_id="a",
        parent_id="0",
        name="Hall",
        created_at=1,
        organization_name="Acme",
    )


def test_one_column_needs_no_shape(path: Path) -> None:
    sql = "SELECT created_at FROM location ORDER BY id"
    assert read_records(path, lambda tx: query_values(tx, int, sql)) == [0, 1, 2]
    assert read_records(path, lambda tx: exists(tx, "SELECT 1 FROM location"))
    assert not read_records(path, lambda tx: exists(tx, "SELECT 1 FROM location WHERE id = 'x'"))


@pytest.mark.parametrize("where", ["", "WHERE id = 'none'"], ids=["rows", "no rows"])
@pytest.mark.parametrize(
    "columns",
    [
        "id, organization_id, parent_id, name",
        "location.*, 1 AS other",
        "location.*, name",
        "location.id AS other, organization_id, parent_id, name, created_at",
    ],
    ids=["missing", "superfluous", "twice", "another"],
)
def test_other_columns_are_refused(path: Path, columns: str, where: str) -> None:
    with pytest.raises(ShapeMismatch, match="the fields of LocationRow are id, organization_id, "):
        read_records(
            path, lambda tx: query(tx, LocationRow, f"SELECT {columns} FROM location {where}")
        )


@pytest.mark.parametrize("value", ["NULL", "'7'", "7.5", "x'07'"])
def test_other_types_are_refused(path: Path, value: str) -> None:
    sql = f"SELECT 'Acme' AS organization, {value} AS locations"
    with pytest.raises(ShapeMismatch, match=r"Counted\.locations is int, not "):
        read_records(path, lambda tx: query(tx, Counted, sql))
    with pytest.raises(ShapeMismatch, match="found is int, not "):
        read_records(path, lambda tx: query_values(tx, int, f"SELECT {value} AS found"))


def test_two_columns_are_no_values(path: Path) -> None:
    with pytest.raises(ShapeMismatch, match="one column is expected, not id, name"):
        read_records(path, lambda tx: query_values(tx, str, "SELECT id, name FROM location"))


def test_a_flag_is_zero_or_one(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE organization SET is_hosting = 2")
    connection.close()
    with pytest.raises(ShapeMismatch, match=r"OrganizationRow\.is_hosting must be 0 or 1, not 2"):
        read_records(path, lambda tx: select(tx, OrganizationRow))
