"""Builds a message of any type from bytes, so that no input is wasted on what does not decode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

_MAX_DEPTH = 5
_COUNTS = (1, 1, 2, 17)
"""Elements of a repeated field."""
_WORDS = (
    *("", "\0", "null", "-1", "9" * 30, "{}", "../../etc/passwd", "' OR '1'='1", "%", "\u202e" * 5),
    *("x" * 1000, "\N{GRINNING FACE}" * 30, "a.b.c", '{"a":' * 50),
)
_FLOATS = (0.0, -1.0, 1e9, 1e308, float("nan"), float("inf"))
_BITS = {
    Field.TYPE_INT32: (31, True),
    Field.TYPE_SINT32: (31, True),
    Field.TYPE_SFIXED32: (31, True),
    Field.TYPE_ENUM: (31, True),
    Field.TYPE_UINT32: (32, False),
    Field.TYPE_FIXED32: (32, False),
    Field.TYPE_INT64: (63, True),
    Field.TYPE_SINT64: (63, True),
    Field.TYPE_SFIXED64: (63, True),
    Field.TYPE_UINT64: (64, False),
    Field.TYPE_FIXED64: (64, False),
}
"""Bits of a number, and whether it may be negative."""


def build_message(kind: type[Message], data: bytes, words: Sequence[str]) -> Message:
    """Return the message that the bytes stand for. `words` are texts that it often contains."""
    message = kind()
    _fill(message, _Source(data, (*words, *_WORDS)), 0)
    return message


class _Source:
    def __init__(self, data: bytes, words: Sequence[str]) -> None:
        self._data = data
        self._at = 0
        self._words = words

    def next_byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def next_bytes(self) -> bytes:
        size = self.next_byte()
        start, self._at = self._at, self._at + size
        return self._data[start : self._at]

    def next_text(self) -> str:
        choice = self.next_byte()
        if choice & 1:
            return self._words[choice // 2 % len(self._words)]
        return self.next_bytes().decode(errors="replace")

    def next_number(self, bits: int, is_signed: bool) -> int:
        choice = self.next_byte()
        largest = (1 << bits) - 1
        smallest = -(1 << bits) if is_signed else 0
        return (choice >> 3, largest, smallest, 1_800_000_000, 0, 1)[choice % 6]


def _fill(message: Message, source: _Source, depth: int) -> None:
    for field in message.DESCRIPTOR.fields:
        choice = source.next_byte()
        if choice % 4 == 0:
            continue
        if _is_map(field):
            _fill_map(message, field, source, depth)
        elif field.is_repeated:
            for _ in range(_COUNTS[choice >> 2 & 3]):
                _append(getattr(message, field.name), field, source, depth)
        elif field.message_type is None:
            setattr(message, field.name, _make_value(field, source))
        else:
            _fill_member(getattr(message, field.name), source, depth)


def _append(values: Any, field: Field, source: _Source, depth: int) -> None:
    if field.message_type is None:
        values.append(_make_value(field, source))
    else:
        _fill_member(values.add(), source, depth)


def _fill_member(message: Message, source: _Source, depth: int) -> None:
    message.SetInParent()
    if depth < _MAX_DEPTH:
        _fill(message, source, depth + 1)


def _fill_map(message: Message, field: Field, source: _Source, depth: int) -> None:
    key_field, value_field = (
        field.message_type.fields_by_number[1],
        field.message_type.fields_by_number[2],
    )
    values = getattr(message, field.name)
    for _ in range(_COUNTS[source.next_byte() & 3]):
        key = _make_value(key_field, source)
        if value_field.message_type is None:
            values[key] = _make_value(value_field, source)
        elif depth < _MAX_DEPTH:
            _fill(values[key], source, depth + 1)


def _make_value(field: Field, source: _Source) -> Any:
    match field.type:
        case Field.TYPE_STRING:
            return source.next_text()
        case Field.TYPE_BYTES:
            return source.next_bytes()
        case Field.TYPE_BOOL:
            return source.next_byte() % 2 == 1
        case Field.TYPE_DOUBLE | Field.TYPE_FLOAT:
            return _FLOATS[source.next_byte() % len(_FLOATS)]
        case _:
            return source.next_number(*_BITS[field.type])


def _is_map(field: Field) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
