"""A zero-copy reader for the fields of a protobuf message.

Use it for messages whose payload is too large to be copied. It accepts the same messages as
protobuf's own parser, in time that is bounded by the number of fields, and raises `InvalidRequest`
for all others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest
from cogwork.wire.messages.protobuf_encoding import read_varint

Bytes = bytes | bytearray | memoryview

VARINT, I64, LEN, GROUP, GROUP_END, I32 = range(6)
"""The wire types of protobuf."""

MAX_FIELDS = 10_000
"""Maximum number of fields, including nested ones; each takes a few microseconds to read."""

_WIDTHS = {I64: 8, I32: 4}
_MAX_TAG = (1 << 32) - 1
_MAX_TAG_LENGTH = 5
_MAX_GROUP_DEPTH = 100
"""Maximum nesting of groups, the same as in protobuf's own parser."""


class Field(NamedTuple):
    """The location of a field's content.

    A run of unpacked numbers with the same tag counts as one field: it extends from the first
    number to the end of the last, including the tags in between.
    """

    number: int
    kind: int
    start: int
    end: int


class FieldReader:
    def __init__(self, data: Bytes) -> None:
        self._data = memoryview(data).cast("B")
        self._octets = np.ndarray((len(self._data),), np.uint8, self._data)
        self._fields_left = MAX_FIELDS

    def root(self) -> Field:
        """Return the whole message as a field."""
        return Field(0, LEN, 0, len(self._data))

    def iter_fields(self, messages: Iterable[Field]) -> Iterator[Field]:
        """Yield the fields of a message, which may be split into several `messages` that protobuf
        merges."""
        for message in messages:
            at = message.start
            while at < message.end:
                field, at = self._read_field(at, message.end)
                yield field

    def group_by_number(self, messages: Iterable[Field]) -> defaultdict[int, list[Field]]:
        """Return the length-delimited fields (strings, bytes and messages) by field number."""
        fields = defaultdict[int, list[Field]](list)
        for field in self.iter_fields(messages):
            if field.kind == LEN:
                fields[field.number].append(field)
        return fields

    def read_bytes(self, field: Field) -> memoryview:
        return self._data[field.start : field.end]

    def read_text(self, field: Field) -> str:
        try:
            return str(self.read_bytes(field), "utf-8")
        except UnicodeDecodeError as error:
            raise _damaged_error(field.start, "the string is not UTF-8") from error

    def read_numbers(self, field: Field, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a view of the numbers, which may be unaligned. The view of unpacked numbers is
        strided."""
        size, width = field.end - field.start, dtype.itemsize
        if field.kind != LEN:
            stride = width + 1
            count = (size + 1) // stride
            return np.ndarray((count,), dtype, self._data, field.start, (stride,))
        if size % width:
            raise _damaged_error(
                field.start, f"the numbers have {size} bytes, which is not a multiple of {width}"
            )
        return np.ndarray((size // width,), dtype, self._data, field.start)

    def _read_field(self, at: int, end: int) -> tuple[Field, int]:
        """Return the field at a position, and the position of the next one."""
        number, kind, at = self._read_tag(at, end)
        if kind == GROUP:
            begin, stop = at, self._skip_group(number, at, end)
        else:
            begin, stop = self._content_span(kind, at, end)
        if kind in _WIDTHS:
            stop = self._find_run_end(number << 3 | kind, stop, end, _WIDTHS[kind])
        return Field(number, kind, begin, stop), stop

    def _read_tag(self, at: int, end: int) -> tuple[int, int, int]:
        self._fields_left -= 1
        if self._fields_left < 0:
            raise InvalidRequest(f"the message has more than {MAX_FIELDS} fields; send fewer")
        tag, start = self._read_varint(at, end)
        if tag < 8 or tag > _MAX_TAG or start - at > _MAX_TAG_LENGTH:
            raise _damaged_error(at, "the field number is invalid")
        return tag >> 3, tag & 7, start

    def _content_span(self, kind: int, at: int, end: int) -> tuple[int, int]:
        if kind == LEN:
            length, at = self._read_varint(at, end)
        elif kind == VARINT:
            length = self._read_varint(at, end)[1] - at
        elif kind in _WIDTHS:
            length = _WIDTHS[kind]
        else:
            raise _damaged_error(at, f"wire type {kind} is not allowed here")
        if length > end - at:
            raise _damaged_error(at, f"the field has {length} bytes, but only {end - at} are left")
        return at, at + length

    def _read_varint(self, at: int, end: int) -> tuple[int, int]:
        value, stop = read_varint(self._data, at, end)
        if stop == at or self._data[stop - 1] >= 0x80:
            raise _damaged_error(at, "the varint is not terminated")
        return value, stop

    def _find_run_end(self, tag: int, at: int, end: int, width: int) -> int:
        """Return the end of a run of numbers with the same tag, if the tag is one byte long."""
        step = 1
        while tag < 0x80 and at < end and self._data[at] == tag:
            # Compare few tags first, and double their number each time: for a short run, comparing
            # all remaining tags would be slow.
            tags = self._octets[at : max(at, end - width) : width + 1][:step]
            others = np.flatnonzero(tags != tag)
            same = int(others[0]) if len(others) else len(tags)
            at += same * (width + 1)
            if same < step:
                break
            step *= 2
        return at

    def _skip_group(self, number: int, at: int, end: int) -> int:
        """Return the end of a group. Our messages have no groups, so all groups are skipped."""
        opened = [number]
        while opened:
            number, kind, at = self._read_tag(at, end)
            if kind == GROUP:
                opened.append(number)
            elif kind != GROUP_END:
                _, at = self._content_span(kind, at, end)
            elif number != opened.pop():
                raise _damaged_error(at, "the end of a group does not match its start")
            if len(opened) > _MAX_GROUP_DEPTH:
                raise _damaged_error(at, f"more than {_MAX_GROUP_DEPTH} groups are nested")
        return at


def _damaged_error(at: int, why: str) -> InvalidRequest:
    return InvalidRequest(f"the message is damaged at byte {at}: {why}")
