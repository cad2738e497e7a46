"""A flatbuffer reader without a schema: fields of tables are accessed by number.

Every offset is checked against the size of the data, and the number of visited tables is bounded.
Invalid data of any kind raises `MalformedFlatbuffer`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_TABLES = 500_000
"""Maximum number of visits to tables. A table that is part of several others counts once per
visit."""
_MAX_TEXT_SIZE = 1 << 16
"""Maximum bytes of a text; the rest is cut off."""
_MAX_COPIED = 16 << 20
"""Maximum bytes of all texts and vectors. If many tables share a text, each of them copies the
text."""

_U8, _U16, _U32, _I32 = (struct.Struct(f"<{kind}") for kind in "BHIi")


class MalformedFlatbuffer(ValueError):
    """The data is not a flatbuffer of the expected type."""


class Flatbuffer:
    def __init__(self, data: bytes | memoryview, identifier: bytes) -> None:
        self.data = memoryview(data)
        self._tables_left = _MAX_TABLES
        self._copy_budget = _MAX_COPIED
        if self.data[4:8] != identifier:
            raise MalformedFlatbuffer(f"it does not start like a {identifier.decode()} file")

    def root(self) -> Table:
        return self.table_at(self.read(_U32, 0))

    def table_at(self, at: int) -> Table:
        self._tables_left -= 1
        if self._tables_left < 0:
            raise MalformedFlatbuffer(f"it has more than {_MAX_TABLES} tables")
        fields = at - self.read(_I32, at)
        return Table(self, at, fields, self.read(_U16, fields))

    def read(self, kind: struct.Struct, at: int) -> int:
        self.check_range(at, kind.size)
        value: int = kind.unpack_from(self.data, at)[0]
        return value

    def copy(self, vector: memoryview) -> bytes:
        self._copy_budget -= len(vector)
        if self._copy_budget < 0:
            raise MalformedFlatbuffer(f"its texts and vectors exceed {_MAX_COPIED} bytes")
        return bytes(vector)

    def check_range(self, at: int, size: int) -> None:
        if at < 0 or at + size > len(self.data):
            raise MalformedFlatbuffer(f"it ends before byte {at + size}")


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Omitted fields have their default: 0 or empty."""

    buffer: Flatbuffer
    position: int
    vtable: int
    """Position of the vtable, which holds the offsets of the fields."""
    vtable_size: int
    """Size of the vtable in bytes."""

    def byte(self, field: int) -> int:
        return self._read_number(field, _U8)

    def int32(self, field: int) -> int:
        return self._read_number(field, _I32)

    def uint32(self, field: int) -> int:
        return self._read_number(field, _U32)

    def text(self, field: int) -> str:
        text = self._vector(field, 1)[:_MAX_TEXT_SIZE]
        return self.buffer.copy(text).decode(errors="replace")

    def octets(self, field: int) -> memoryview:
        return self._vector(field, 1)

    def floats(self, field: int) -> list[float]:
        return [value for (value,) in struct.iter_unpack("<f", self._copy_vector(field))]

    def int32s(self, field: int) -> list[int]:
        return [value for (value,) in struct.iter_unpack("<i", self._copy_vector(field))]

    def table(self, field: int) -> Table | None:
        at = self._field_position(field)
        return None if at is None else self.buffer.table_at(self._follow_offset(at))

    def tables(self, field: int) -> Iterator[Table]:
        at = self._field_position(field)
        if at is None:
            return
        vector = self._follow_offset(at)
        for index in range(self.buffer.read(_U32, vector)):
            yield self.buffer.table_at(self._follow_offset(vector + 4 + 4 * index))

    def _read_number(self, field: int, kind: struct.Struct) -> int:
        at = self._field_position(field)
        return 0 if at is None else self.buffer.read(kind, at)

    def _vector(self, field: int, width: int) -> memoryview:
        at = self._field_position(field)
        if at is None:
            return memoryview(b"")
        vector = self._follow_offset(at)
        size = width * self.buffer.read(_U32, vector)
        self.buffer.check_range(vector + 4, size)
        return self.buffer.data[vector + 4 : vector + 4 + size]

    def _copy_vector(self, field: int) -> bytes:
        return self.buffer.copy(self._vector(field, 4))

    def _follow_offset(self, at: int) -> int:
        return at + self.buffer.read(_U32, at)

    def _field_position(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self.vtable_size:
            return None
        offset = self.buffer.read(_U16, self.vtable + entry)
        return self.position + offset if offset else None
