"""Counts the elements of a message before it is parsed.

Parsing an element may take 50 times the memory of its bytes, so elements must be counted first.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from cogwork.wire.messages.protobuf_encoding import read_varint

_NUMBERS_PER_ELEMENT = 8
"""How many numbers count as one element. A number takes less memory than a message or a string."""
_FIELDS_PER_ELEMENT = 8
"""Maximum number of fields to scan, as a multiple of the maximum number of elements."""

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
"""Wire types of a field's value."""
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}
_NUMBER_SIZES = {
    FieldDescriptor.TYPE_DOUBLE: 8,
    FieldDescriptor.TYPE_FIXED64: 8,
    FieldDescriptor.TYPE_SFIXED64: 8,
    FieldDescriptor.TYPE_FLOAT: 4,
    FieldDescriptor.TYPE_FIXED32: 4,
    FieldDescriptor.TYPE_SFIXED32: 4,
}
"""Bytes per number in a packed list, by field type. Numbers of all other types are varints."""
_CONTINUED = bytes(range(0x80, 0x100))
"""The bytes that do not end a varint: their highest bit is set."""


class _Field(NamedTuple):
    weight: int
    """The cost of each occurrence of the field; 0 if the field is not repeated. One number of a
    repeated field costs 1, also in a packed list."""
    message: Descriptor | None
    """The type of nested messages; None for fields without messages, and for maps to numbers or
    strings."""
    number_size: int | None
    """Bytes of each number in the list, or 0 for varints; None if the field is not a list of
    numbers."""


def count_elements(data: bytes, message: Descriptor, limit: int) -> int:
    """Return the number of elements in all lists and maps of a message, at every depth.

    If there are more than `limit`, or too many fields, stop and return a number above `limit`.
    Return 0 for a malformed message within these limits, because the parser rejects it.
    """
    try:
        numbers = _count(data, message, limit)
    except IndexError:
        return 0
    return -(-numbers // _NUMBERS_PER_ELEMENT)


def _count(data: bytes, message: Descriptor, limit: int) -> int:
    """Return the total cost of all lists and maps; one number costs 1. Raise IndexError if the
    message is malformed."""
    most = limit * _NUMBERS_PER_ELEMENT
    numbers, fields_left = 0, limit * _FIELDS_PER_ELEMENT
    at, end, fields = 0, len(data), _fields_of(message)
    outer: list[tuple[int, int, Mapping[int, _Field]]] = []
    while True:
        if at >= end:
            if not outer:
                return numbers
            at, end, fields = outer.pop()
            continue
        if numbers > most or fields_left <= 0:
            return most + 1
        fields_left -= 1
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = read_varint(data, at - 1, end)
        field, encoding = fields.get(key >> 3), key & 7
        if field is not None:
            numbers += field.weight
        if encoding == _LENGTH_DELIMITED:
            size = data[at]
            at += 1
            if size >= 0x80:
                size, at = read_varint(data, at - 1, end)
            begin, at = at, at + size
            if at > end:
                raise IndexError
            if field is None:
                continue
            if field.message is not None:
                outer.append((at, end, fields))
                at, end, fields = begin, at, _fields_of(field.message)
            elif field.number_size is not None:
                numbers += _count_numbers(data[begin:at], field.number_size) - field.weight
        elif encoding == _VARINT:
            _, at = read_varint(data, at, end)
        elif encoding in _FIXED_SIZES:
            at += _FIXED_SIZES[encoding]
        elif encoding > _FIXED32:
            raise IndexError
        # Otherwise, a group begins or ends. Our messages have no groups, so fields in groups are
        # counted like all other fields.


def _count_numbers(data: bytes, size: int) -> int:
    return len(data) // size if size else len(data.translate(None, _CONTINUED))


@functools.cache
def _fields_of(message: Descriptor) -> Mapping[int, _Field]:
    return {each.number: _describe(each) for each in message.fields}


def _describe(field: FieldDescriptor) -> _Field:
    message = field.message_type
    if message is not None:
        weight = _NUMBERS_PER_ELEMENT if field.is_repeated else 0
        is_flat = (
            message.GetOptions().map_entry and not message.fields_by_name["value"].message_type
        )
        return _Field(weight, None if is_flat else message, None)
    if not field.is_repeated:
        return _Field(0, None, None)
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES):
        return _Field(_NUMBERS_PER_ELEMENT, None, None)
    return _Field(1, None, _NUMBER_SIZES.get(field.type, 0))
