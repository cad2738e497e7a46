"""The fields of a protobuf message, found in its bytes and left where they are.

For messages whose payload is too large to be copied. Reads what protobuf's own parser reads, in
time that the number of fields bounds, and refuses the rest as `InvalidRequest`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest

Bytes = bytes | bytearray | memoryview

VARINT, I64, LEN, GROUP, GROUP_END, I32 = range(6)
"""The kinds of field, as protobuf numbers them."""

MOST_FIELDS = 20_000
"""Fields of a message with those of the messages in it: one takes some microseconds."""

_WIDTHS = {I64: 8, I32: 4}
_LARGEST_TAG = (1 << 32) - 1
_LONGEST_TAG = 5
_LONGEST_VARINT = 10
_DEEPEST = 100
"""Groups in each other, as protobuf's own parser allows."""


class Field(NamedTuple):
    """Where the content of a field is.

    Numbers that follow each other unpacked, each under its own tag, are one field: from the first
    number to the end of the last, with the tags of the others between them.
    """

    number: int
    kind: int
    at: int
    end: int


class FieldReader:
    def __init__(self, data: Bytes) -> None:
        self._data = memoryview(data).cast("B")
        self._octets = np.ndarray((len(self._data),), np.uint8, self._data)
        self._left = MOST_FIELDS

    def whole(self) -> Field:
        """The message itself, as if it were a field of another."""
        return Field(0, LEN, 0, len(self._data))

    def fields(self, messages: Iterable[Field]) -> Iterator[Field]:
        """Of one message in several pieces: protobuf merges a message that comes repeatedly."""
        for message in messages:
            at = message.at
            while at < message.end:
                field, at = self._field(at, message.end)
                yield field

    def by_number(self, messages: Iterable[Field]) -> defaultdict[int, list[Field]]:
        """Those of them that are texts, bytes or messages."""
        found = defaultdict[int, list[Field]](list)
        for field in self.fields(messages):
            if field.kind == LEN:
                found[field.number].append(field)
        return found

    def octets(self, field: Field) -> memoryview:
        return self._data[field.at : field.end]

    def text(self, field: Field) -> str:
        try:
            return str(self.octets(field), "utf-8")
        except UnicodeDecodeError as error:
            raise _damage(field.at, "the text is not UTF-8") from error

    def numbers(self, field: Field, dtype: np.dtype[Any]) -> NDArray[Any]:
        """A view, wherever in memory that begins; of unpacked numbers one with gaps."""
        size, width = field.end - field.at, dtype.itemsize
        if field.kind != LEN:
            stride = width + 1
            count = (size + 1) // stride
            return np.ndarray((count,), dtype, self._data, field.at, (stride,))
        if size % width:
            raise _damage(field.at, f"{size} bytes are not numbers of {width} bytes each")
        return np.ndarray((size // width,), dtype, self._data, field.at)

    def _field(self, at: int, end: int) -> tuple[Field, int]:
        """The field that begins here, and where the next one does."""
        number, kind, at = self._tag(at, end)
        if kind == GROUP:
            begin, stop = at, self._after_group(number, at, end)
        else:
            begin, stop = self._content(kind, at, end)
        if kind in _WIDTHS:
            stop = self._run(number << 3 | kind, stop, end, _WIDTHS[kind])
        return Field(number, kind, begin, stop), stop

    def _tag(self, at: int, end: int) -> tuple[int, int, int]:
        self._left -= 1
        if self._left < 0:
            raise InvalidRequest(f"the message has more than {MOST_FIELDS} fields: send fewer")
        tag, start = self._varint(at, end)
        if tag < 8 or tag > _LARGEST_TAG or start - at > _LONGEST_TAG:
            raise _damage(at, "no field has such a number")
        return tag >> 3, tag & 7, start

    def _content(self, kind: int, at: int, end: int) -> tuple[int, int]:
        if kind == LEN:
            length, at = self._varint(at, end)
        elif kind == VARINT:
            length = self._varint(at, end)[1] - at
        elif kind in _WIDTHS:
            length = _WIDTHS[kind]
        else:
            raise _damage(at, f"no field is of kind {kind} here")
        if length > end - at:
            raise _damage(at, f"a field of {length} bytes where {end - at} are left")
        return at, at + length

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        value = 0
        for place, byte in enumerate(self._data[at : min(end, at + _LONGEST_VARINT)]):
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value, at + place + 1
        raise _damage(at, "a number without an end")

    def _run(self, tag: int, at: int, end: int, width: int) -> int:
        """Where the numbers end that follow each other under the same tag, if it is one byte."""
        step = 1
        while tag < 0x80 and at < end and self._data[at] == tag:
            # By steps that double: a short run must not cost a look at all that follows it.
            tags = self._octets[at : max(at, end - width) : width + 1][:step]
            others = np.flatnonzero(tags != tag)
            same = int(others[0]) if len(others) else len(tags)
            at += same * (width + 1)
            if same < step:
                break
            step *= 2
        return at

    def _after_group(self, number: int, at: int, end: int) -> int:
        """Groups are older than any message of ours: each is unknown, and skipped."""
        opened = [number]
        while opened:
            number, kind, at = self._tag(at, end)
            if kind == GROUP:
                opened.append(number)
            elif kind != GROUP_END:
                _, at = self._content(kind, at, end)
            elif number != opened.pop():
                raise _damage(at, "the end of a group that did not begin")
            if len(opened) > _DEEPEST:
                raise _damage(at, f"more than {_DEEPEST} groups in each other")
        return at


def _damage(at: int, why: str) -> InvalidRequest:
    return InvalidRequest(f"the message is damaged at byte {at}: {why}")
