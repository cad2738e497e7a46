"""Reads rows of the records as typed values.

A shape is a frozen dataclass or a NamedTuple whose fields have the names of the columns. The shapes
of tables are in `tables.py`; the shape of another query is beside the query. Missing columns, extra
columns and wrong types are errors in the code, and raise ShapeMismatch at once.
"""

from __future__ import annotations

import enum
import re
import types
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

from cogwork.cloud.storage.records import Transaction, Value

T = TypeVar("T")

_NONE: Final = type(None)
_STORED: Final[dict[type, type]] = {str: str, int: int, bytes: bytes, bool: int}
"""The stored types of columns by field type."""
_MAX_STATEMENTS: Final = 1024
"""Maximum number of cached statements: more than the code has, so it limits memory only if a
statement has varying text."""


class ShapeMismatch(Exception):
    """The columns or types of a query do not match its shape."""


def select(tx: Transaction, table: type[T], rest: str = "", *values: Value) -> list[T]:
    """Return rows of a table. `rest` is the SQL after the table name, including joins."""
    # mypy does not know that all classes are hashable.
    sql = _select_from(table, rest)  # type: ignore[arg-type]
    return query(tx, table, sql, *values)


def select_one(tx: Transaction, table: type[T], rest: str, *values: Value) -> T | None:
    """Return the first row; None if no row exists."""
    return first(select(tx, table, rest, *values))


def query(tx: Transaction, shape: type[T], sql: str, *values: Value) -> list[T]:
    """Return the rows of a query. Its columns are the fields of the shape, in any order."""
    found = tx.read_rows(sql, *values)
    reader = _reader_of_rows(shape, found.columns)  # type: ignore[arg-type]
    return [*map(reader.read, found.values)]


def query_values(tx: Transaction, kind: type[T], sql: str, *values: Value) -> list[T]:
    """Return the values of a query with one column."""
    found = tx.read_rows(sql, *values)
    reader = _reader_of_values(kind, found.columns)  # type: ignore[arg-type]
    return [*map(reader.read, found.values)]


def exists(tx: Transaction, sql: str, *values: Value) -> bool:
    """Return whether a query has any row."""
    return bool(tx.read_rows(sql, *values).values)


def first(found: Sequence[T]) -> T | None:
    return found[0] if found else None


@cache
def table_of(shape: type) -> str:
    """Return the table of a shape, such as `api_key` for ApiKeyRow."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", shape.__name__.removesuffix("Row")).lower()


@lru_cache(_MAX_STATEMENTS)
def _select_from(table: type, rest: str) -> str:
    name = table_of(table)
    columns = ", ".join(f"{name}.{field}" for field in get_type_hints(table))
    return f"SELECT {columns} FROM {name} {rest}"  # noqa: S608 - all of it is ours


class _Field(NamedTuple):
    name: str
    """The name in error messages."""
    accepted: frozenset[type]
    """The allowed types of the column."""
    convert: Callable[[Any], Any] | None
    """Converts a column value, unless it is None, to the field's type; None for no conversion."""


class _RowReader:
    """Converts rows with certain columns to values. Threads may use it."""

    def __init__(
        self, make: Callable[..., Any], fields: Sequence[_Field], order: Sequence[int]
    ) -> None:
        """`order` has the positions of the fields in a row."""
        self._make = make
        self._fields = fields
        self._order = order if [*order] != [*range(len(fields))] else ()
        self._converted = [
            (index, each.convert) for index, each in enumerate(fields) if each.convert is not None
        ]
        self._accepted: set[tuple[type, ...]] = set()
        """The combinations of types that were already checked. They are few, because only None
        varies, and a lookup here is much faster than a check of every value."""

    def read(self, row: Sequence[Any]) -> Any:
        if self._order:
            row = [row[index] for index in self._order]
        kinds = tuple(map(type, row))
        if kinds not in self._accepted:
            self._check(kinds)
        if self._converted:
            row = [*row]
            for index, convert in self._converted:
                if row[index] is not None:
                    row[index] = convert(row[index])
        return self._make(*row)

    def _check(self, kinds: tuple[type, ...]) -> None:
        for field, kind in zip(self._fields, kinds, strict=True):
            if kind not in field.accepted:
                expected = " or ".join(sorted(each.__name__ for each in field.accepted))
                raise ShapeMismatch(f"{field.name} is {expected}, not {kind.__name__}")
        self._accepted.add(kinds)


@cache
def _reader_of_rows(shape: type, columns: tuple[str, ...]) -> _RowReader:
    hints = get_type_hints(shape)
    if sorted(hints) != sorted(columns):
        raise ShapeMismatch(
            f"the fields of {shape.__name__} are {', '.join(hints)}, and the columns of the query "
            f"are {', '.join(columns)}"
        )
    fields = [_make_field(f"{shape.__name__}.{name}", kind) for name, kind in hints.items()]
    return _RowReader(shape, fields, [*map(columns.index, hints)])


@cache
def _reader_of_values(kind: type, columns: tuple[str, ...]) -> _RowReader:
    if len(columns) != 1:
        raise ShapeMismatch(f"one column is expected, not {', '.join(columns)}")
    return _RowReader(lambda value: value, [_make_field(columns[0], kind)], [0])


def _make_field(name: str, annotation: Any) -> _Field:
    is_optional = isinstance(annotation, types.UnionType)
    kinds = [each for each in get_args(annotation) if each is not _NONE] if is_optional else ()
    (kind,) = kinds or (annotation,)
    stored = _STORED.get(kind)
    if stored is None:  # enumerations are stored as their base type
        stored = str if issubclass(kind, enum.StrEnum) else int
    accepted = frozenset((stored, _NONE) if is_optional else (stored,))
    convert = partial(_read_flag, name) if kind is bool else kind if kind is not stored else None
    return _Field(name, accepted, convert)


def _read_flag(name: str, value: int) -> bool:
    if value not in (0, 1):
        raise ShapeMismatch(f"{name} must be 0 or 1, not {value}")
    return value == 1
