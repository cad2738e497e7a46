"""One line of the spool: JSON that shows by itself whether it is whole."""

from __future__ import annotations

import json
import zlib

from cogwork.logs.entry import Entry

LONGEST = 256 << 10
"""Bytes of one line. A longer one is dropped."""


def encode(entry: Entry) -> bytes:
    """Fields that JSON does not know become text. Half of a surrogate pair becomes "?"."""
    value: dict[str, object] = {
        "time": entry.time,
        "level": entry.level,
        "logger": entry.logger,
        "place": entry.place,
        "message": entry.message,
    }
    if entry.fields:
        value["fields"] = entry.fields
    if entry.trace:
        value["trace"] = entry.trace
    return COMPACT.encode(value).encode(errors="replace")


def decode(body: bytes) -> Entry | None:
    """None if another version wrote what this one cannot read."""
    try:
        return Entry(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None


COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)

OVERHEAD = 64
"""Bytes that sealing adds, at most."""
_START = b'{"crc":"'
_REST = len(_START) + len('01234567",')


def seal(number: int, body: bytes) -> bytes:
    """A line of JSON that shows whether it is whole."""
    rest = b'"n":%d,"data":%s}\n' % (number, body)
    return b'%s%08x",%s' % (_START, zlib.crc32(rest), rest)


def unseal(line: bytes) -> tuple[int, bytes] | None:
    """None if it is damaged."""
    rest = line[_REST:]
    if not line.startswith(b'%s%08x",' % (_START, zlib.crc32(rest))):
        return None
    number, _, body = rest.removeprefix(b'"n":').removesuffix(b"}\n").partition(b',"data":')
    return int(number), body
