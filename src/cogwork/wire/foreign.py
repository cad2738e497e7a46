"""Calls of services that nobody registered: of their requests, only the name is read."""

from __future__ import annotations

_NAME = 1
"""The number of the field that names the resource, in every request of the public API."""
_NAME_FIRST = _NAME << 3 | 2
"""What stands before it when it comes first: its number, and that a length follows."""
_LONGEST = 1024
_AHEAD = 64
"""Fields that may come before the name. Who writes by number has none; who means harm, millions."""


def name_in(message: bytes) -> str | None:
    """The resource that a request names; None if it names none, or is no message at all."""
    found = _first_field(message)
    return _text(found) if found is not None and len(found) <= _LONGEST else None


def name_within(message: bytes) -> str | None:
    """Where it stands in a message of its own, ahead of what is sent piece by piece."""
    found = _first_field(message)
    return name_in(found) if found is not None else None


def _first_field(message: bytes) -> bytes | None:
    at, size = 0, len(message)
    if size > 1 and message[0] == _NAME_FIRST and message[1] < 0x80:
        # As nearly every request begins; this is read with every call.
        end = 2 + message[1]
        return message[2:end] if end <= size else None
    for _ in range(_AHEAD):
        if at >= size:
            break
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == 2:
            length, at = _varint(message, at)
            if number == _NAME:
                return message[at : at + length] if length <= size - at else None
            at += length
        elif kind == 0:
            _, at = _varint(message, at)
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            return None
    return None


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """The number, and where the next begins. What is cut off counts as its beginning."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at


def _text(data: bytes) -> str | None:
    try:
        return data.decode() or None
    except UnicodeDecodeError:
        return None
