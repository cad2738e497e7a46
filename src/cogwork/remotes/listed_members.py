"""Splits a list from another machine, so that it can be parsed in small steps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cogwork.wire.messages.protobuf_encoding import read_varint

_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
"""The wire types of protobuf, except groups."""
_WIDTHS: Final = {_I64: 8, _I32: 4}
_MEMBER_TAG: Final = 1 << 3 | _LEN
"""The tag of the members, which are field 1 of every such reply."""


class UnreadableList(ValueError):
    """The reply is not a list of messages."""


def split_members(reply: bytes, size: int, count: int) -> Iterator[bytes]:
    """Yield the list in parts. Each part is a message with at most `count` members.

    Members beyond the first `size` bytes are omitted. Raise UnreadableList.
    """
    start = at = 0
    found = 0
    end = len(reply)
    while at < end:
        after = _find_end(reply, at, end)
        if after > size:
            break
        at = after
        found += 1
        if found == count:
            yield reply[start:at]
            start, found = at, 0
    if found:
        yield reply[start:at]


def _find_end(reply: bytes, at: int, end: int) -> int:
    """Return the end of the field that begins at `at`."""
    if reply[at] == _MEMBER_TAG and at + 1 < end and reply[at + 1] < 0x80:
        at += 2 + reply[at + 1]  # fast path: nearly all members are this short
    else:
        tag, at = read_varint(reply, at, end)
        kind = tag & 7
        if kind in (_VARINT, _LEN):
            value, at = read_varint(reply, at, end)
            at += value if kind == _LEN else 0
        elif kind in _WIDTHS:
            at += _WIDTHS[kind]
        else:
            raise UnreadableList(f"a field has the unsupported wire type {kind}")
    if at > end:
        raise UnreadableList("the list is truncated")
    return at
