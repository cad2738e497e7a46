"""Flatbuffers without their schema: tables, whose fields are known by number.

Every place is looked up only if the bytes have it, and in time that the number of tables bounds:
whatever is wrong with a file ends as `Malformed`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_MOST_TABLES = 500_000
"""That may be visited, each as often as it is: tables may share their parts."""
_LONGEST_TEXT = 1 << 16
"""Bytes; the rest of a text is left out."""

_U8, _U16, _U32, _I32 = (struct.Struct(f"<{kind}") for kind in "BHIi")


class Malformed(ValueError):
    """The bytes are not the flatbuffer that was expected."""


class Flatbuffer:
    def __init__(self, data: bytes | memoryview, identifier: bytes) -> None:
        self.data = memoryview(data)
        self._left = _MOST_TABLES
        if self.data[4:8] != identifier:
            raise Malformed(f"it does not begin as a {identifier.decode()} file does")

    def root(self) -> Table:
        return self.table_at(self.read(_U32, 0))

    def table_at(self, at: int) -> Table:
        self._left -= 1
        if self._left < 0:
            raise Malformed(f"it has more than {_MOST_TABLES} tables")
        fields = at - self.read(_I32, at)
        return Table(self, at, fields, self.read(_U16, fields))

    def read(self, kind: struct.Struct, at: int) -> int:
        self.check(at, kind.size)
        value: int = kind.unpack_from(self.data, at)[0]
        return value

    def check(self, at: int, size: int) -> None:
        if at < 0 or at + size > len(self.data):
            raise Malformed(f"it ends before byte {at + size}")


@dataclass(frozen=True, slots=True)
class Table:
    """Every field has a default, which it has where it is left out: 0, or nothing."""

    buffer: Flatbuffer
    at: int
    fields: int
    """Where the places of the fields are."""
    size: int
    """Of those places, in bytes."""

    def byte(self, field: int) -> int:
        return self._number(field, _U8)

    def int32(self, field: int) -> int:
        return self._number(field, _I32)

    def uint32(self, field: int) -> int:
        return self._number(field, _U32)

    def text(self, field: int) -> str:
        return bytes(self._vector(field, 1)[:_LONGEST_TEXT]).decode(errors="replace")

    def octets(self, field: int) -> memoryview:
        return self._vector(field, 1)

    def floats(self, field: int) -> list[float]:
        return [value for (value,) in struct.iter_unpack("<f", self._vector(field, 4))]

    def int32s(self, field: int) -> list[int]:
        return [value for (value,) in struct.iter_unpack("<i", self._vector(field, 4))]

    def table(self, field: int) -> Table | None:
        at = self._place(field)
        return None if at is None else self.buffer.table_at(self._target(at))

    def tables(self, field: int) -> Iterator[Table]:
        at = self._place(field)
        if at is None:
            return
        vector = self._target(at)
        for index in range(self.buffer.read(_U32, vector)):
            yield self.buffer.table_at(self._target(vector + 4 + 4 * index))

    def _number(self, field: int, kind: struct.Struct) -> int:
        at = self._place(field)
        return 0 if at is None else self.buffer.read(kind, at)

    def _vector(self, field: int, width: int) -> memoryview:
        at = self._place(field)
        if at is None:
            return memoryview(b"")
        vector = self._target(at)
        size = width * self.buffer.read(_U32, vector)
        self.buffer.check(vector + 4, size)
        return self.buffer.data[vector + 4 : vector + 4 + size]

    def _target(self, at: int) -> int:
        return at + self.buffer.read(_U32, at)

    def _place(self, field: int) -> int | None:
        entry = 4 + 2 * field
        if entry + 2 > self.size:
            return None
        offset = self.buffer.read(_U16, self.fields + entry)
        return self.at + offset if offset else None
