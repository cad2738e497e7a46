"""The shapes of rows are those of the tables, and no rows without a shape are used."""

from __future__ import annotations

import ast
import inspect
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import cogwork.cloud
from cogwork.cloud.fleet.log_losses import LogLoss
from cogwork.cloud.keys.cloud_key import CloudKey
from cogwork.cloud.storage import tables
from cogwork.cloud.storage.select import table_of
from cogwork.cloud.storage.sqlite_records import write_records
from cogwork.cloud.updates.releases import Release

SHAPES: list[type] = [
    *(each for _, each in inspect.getmembers(tables, inspect.isclass) if each is not dataclass),
    *(CloudKey, LogLoss, Release),
]
SOURCE = Path(cogwork.cloud.__file__).parent
STORAGE = SOURCE / "storage"


@pytest.fixture
def schema(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "records.db"
    path.touch()
    write_records(path, lambda _: None)
    with closing(sqlite3.connect(path)) as connection:
        yield connection


def test_every_table_has_a_shape(schema: sqlite3.Connection) -> None:
    rows = schema.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert sorted(map(table_of, SHAPES)) == sorted(
        name for (name,) in rows if not name.startswith("sqlite_")
    )


@pytest.mark.parametrize("shape", SHAPES, ids=table_of)
def test_fields_are_the_columns(schema: sqlite3.Connection, shape: type) -> None:
    columns = schema.execute(f"PRAGMA table_info({table_of(shape)})").fetchall()
    expected = [
        (name, kind, not is_required and not is_key)
        for _, name, kind, is_required, _, is_key in columns
    ]
    assert [_describe(*each) for each in get_type_hints(shape).items()] == expected


def test_only_the_storage_reads_rows_without_a_shape() -> None:
    callers = [
        f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in SOURCE.rglob("*.py")
        if not path.is_relative_to(STORAGE)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "read_rows"
    ]
    assert not callers, "use the functions of cogwork.cloud.storage.select"


def _describe(name: str, annotation: Any) -> tuple[str, str, bool]:
    """Return the column of a field: its name, its type, and whether it may be NULL."""
    kinds = getattr(annotation, "__args__", (annotation,))
    (kind,) = (each for each in kinds if each is not type(None))
    if kind is bool or name == "visibility":
        return name, "INTEGER", len(kinds) > 1
    return name, "TEXT" if issubclass(kind, str) else "BIGINT", len(kinds) > 1
