"""Insertion of rows into the tables that `tables.py` defines."""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

from cogwork.cloud.storage.records import Transaction, Value
from cogwork.cloud.storage.select import table_of


def insert(tx: Transaction, row: object) -> None:
    """Insert a row. Raise DuplicateRecord or BrokenReference."""
    _store(tx, row, ())


def upsert(tx: Transaction, row: object, *key: str) -> None:
    """Insert a row, or replace the row with the same values in the key columns."""
    _store(tx, row, key)


def _store(tx: Transaction, row: object, key: tuple[str, ...]) -> None:
    table: Any = type(row)  # mypy does not know that all classes are hashable
    values = (getattr(row, name) for name in _columns_of(table))
    tx.execute(_statement_for(table, key), *map(_to_value, values))


@cache
def _statement_for(table: type, key: tuple[str, ...]) -> str:
    columns = _columns_of(table)
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table_of(table)} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608 - all of it is ours
    if not key:
        return statement
    changes = ", ".join(f"{each} = excluded.{each}" for each in columns if each not in key)
    return f"{statement} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


@cache
def _columns_of(table: type) -> tuple[str, ...]:
    return tuple(get_type_hints(table))


def _to_value(field: Value) -> Value:
    """Return a value as stored: flags become integers."""
    return int(field) if isinstance(field, bool) else field
