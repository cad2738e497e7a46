"""Checks that the headers of an HTTP/2 request are valid text, without a complete decoder."""

from __future__ import annotations

import functools

from hpack.exceptions import HPACKError
from hpack.huffman_table import decode_huffman


def has_utf8_headers(block: bytes) -> bool:
    """Return whether all literal strings in an HPACK header block are valid UTF-8.

    Indexed fields need no check, because they refer to literals that were checked before. A
    malformed block counts as invalid.
    """
    return (
        _has_utf8_headers_cached(block)
        if len(block) <= _MAX_CACHED_BLOCK
        else _has_utf8_headers(block)
    )


_MAX_CACHED_BLOCK = 256


@functools.lru_cache(maxsize=1024)
def _has_utf8_headers_cached(block: bytes) -> bool:
    """Like `has_utf8_headers`, but cached: most calls on a connection repeat the previous
    headers."""
    return _has_utf8_headers(block)


def _has_utf8_headers(block: bytes) -> bool:
    at, end = 0, len(block)
    try:
        while at < end:
            first = block[at]
            if first & 0x80:
                at = _decode_integer(block, at, 7)[1]
            elif first & 0xE0 == 0x20:
                at = _decode_integer(block, at, 5)[1]
            else:
                name, at = _decode_integer(block, at, 6 if first & 0x40 else 4)
                if name == 0:
                    at = _check_string(block, at)
                at = _check_string(block, at)
    except (IndexError, ValueError, HPACKError):
        return False
    return at == end


def _check_string(block: bytes, at: int) -> int:
    """Return the offset after the string. Raise ValueError if it is not valid UTF-8."""
    is_huffman = block[at] & 0x80
    size, at = _decode_integer(block, at, 7)
    text = block[at : at + size]
    if len(text) < size:
        raise ValueError("an HPACK string is truncated")
    if is_huffman:
        if _may_be_binary(text):
            decode_huffman(text).decode()
    elif not text.isascii():
        text.decode()
    return at + size


def _may_be_binary(coded: bytes) -> bool:
    """Return whether a Huffman string has 13 consecutive one bits.

    The codes of all bytes above 0x7F contain them, so a string without them is ASCII.
    """
    bits = int.from_bytes(coded, "big")
    bits &= bits >> 1
    bits &= bits >> 2
    bits &= bits >> 4
    return bool(bits & bits >> 5)


def _decode_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    prefix_max = (1 << bits) - 1
    value = block[at] & prefix_max
    at += 1
    if value < prefix_max:
        return value, at
    for shift in range(0, 28, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("an HPACK integer is too large")
