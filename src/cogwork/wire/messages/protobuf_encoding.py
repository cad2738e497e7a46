"""Protobuf varints and field headers, for messages that are encoded or decoded by hand."""

from __future__ import annotations

_WIRE_TYPE_LEN = 2
"""Wire type of length-delimited fields."""


def encode_field_header(number: int, size: int) -> bytes:
    """Return the tag and length that precede a field of `size` bytes."""
    return encode_varint(number << 3 | _WIRE_TYPE_LEN) + encode_varint(size)


def read_varint(data: bytes | memoryview, at: int, end: int) -> tuple[int, int]:
    """Return the number and the offset after it. A truncated number has the value of its bytes so
    far."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
    return value, at


def encode_varint(value: int) -> bytes:
    octets = bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)
