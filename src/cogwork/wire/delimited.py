"""What protobuf writes before the content of a field, for messages that are made by hand."""

from __future__ import annotations

_LEN = 2
"""The kind of field that says how many bytes it has."""


def delimited(number: int, size: int) -> bytes:
    """Of a field of so many bytes."""
    return varint(number << 3 | _LEN) + varint(size)


def varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
