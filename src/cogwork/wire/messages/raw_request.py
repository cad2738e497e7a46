"""Reads and replaces the resource name in a request, without parsing the rest."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.wire.messages.protobuf_encoding import encode_field_header, read_varint

_NAME_FIELD = 1
"""Number of the field with the resource name, in every request of the public API."""
_NAME_TAG = _NAME_FIELD << 3 | 2
"""The tag of that field: its number and the length-delimited wire type."""
_MAX_NAME_LENGTH = 1024
_MAX_FIELDS_BEFORE_NAME = 64
"""Maximum fields before the name. Normal encoders write none; an attacker may send millions."""


def read_resource_name(message: bytes) -> str | None:
    """Return the resource name in a request; None if it has no name or is malformed."""
    found = _find_name_field(message)
    return _decode_text(found) if found is not None and len(found) <= _MAX_NAME_LENGTH else None


def read_nested_resource_name(message: bytes) -> str | None:
    """Return the resource name in a nested message, as in requests that upload data in chunks."""
    found = _find_name_field(message)
    return read_resource_name(found) if found is not None else None


def rename_resource(message: bytes, name: str) -> bytes:
    """Return the request with another resource name. A request without a name is unchanged."""
    return _replace(message, name.encode())


def rename_nested_resource(message: bytes, name: str) -> bytes:
    """Return the request with another resource name in its nested message."""
    found = _find_span(message)
    if found is None:
        return message
    return _replace(message, rename_resource(message[found.data : found.end], name))


def _replace(message: bytes, content: bytes) -> bytes:
    found = _find_span(message)
    if found is None:
        return message
    header = encode_field_header(_NAME_FIELD, len(content))
    return b"".join((message[: found.start], header, content, message[found.end :]))


def _find_name_field(message: bytes) -> bytes | None:
    found = _find_span(message)
    return message[found.data : found.end] if found is not None else None


class _Span(NamedTuple):
    """The offsets of a field: its start, the start of its content, and its end."""

    start: int
    data: int
    end: int


def _find_span(message: bytes) -> _Span | None:
    at, size = 0, len(message)
    if size > 1 and message[0] == _NAME_TAG and message[1] < 0x80:
        # A fast path for nearly all requests: the name is their first field.
        end = 2 + message[1]
        return _Span(0, 2, end) if end <= size else None
    for _ in range(_MAX_FIELDS_BEFORE_NAME):
        if at >= size:
            break
        start = at
        key, at = read_varint(message, at, size)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, at = read_varint(message, at, size)
            if number == _NAME_FIELD:
                return _Span(start, at, at + length) if length <= size - at else None
            at += length
        elif kind == 0:
            _, at = read_varint(message, at, size)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return None
    return None


def _decode_text(data: bytes) -> str | None:
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        return None
