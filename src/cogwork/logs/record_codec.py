"""The line format of the spool: JSON with a checksum."""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

from cogwork.logs.entry import Entry, describe_content

MAX_ENTRY_BYTES = 256 << 10
"""Maximum size of an entry in bytes. Larger entries are dropped."""


def encode_entry(entry: Entry) -> bytes:
    """Encode an entry. Values that JSON does not support become text, and lone surrogates become
    "?"."""
    value = {"time": entry.time, "level": entry.level, **describe_content(entry)}
    return COMPACT_JSON.encode(value).encode(errors="replace")


def decode_entry(body: bytes) -> Entry | None:
    """Decode an entry. Return None if another version has written it in an incompatible format."""
    try:
        value = json.loads(body)
        entry = Entry(**value)
    except (ValueError, TypeError, RecursionError):
        return None
    return entry if _is_valid(value) else None


def _is_valid(value: dict[str, Any]) -> bool:
    """Check the types of the fields, because a dataclass does not check them."""
    return (
        all(isinstance(value[key], str) for key in ("logger", "place", "message"))
        and isinstance(value["level"], int)
        and isinstance(value["time"], int | float)
        and abs(value["time"]) < _END_OF_TIME
        and isinstance(value.get("fields", {}), dict)
        and isinstance(value.get("trace"), str | None)
    )


_END_OF_TIME = 253402300800
"""The year 10000 in seconds since 1970, which timestamps cannot represent."""


COMPACT_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)

RECORD_OVERHEAD = 64
"""Maximum number of bytes that a record adds to an entry."""
_START = b'{"crc":"'
_PREFIX_LENGTH = len(_START) + len('01234567",')
_RECORD = re.compile(rb'"n":([0-9]{1,19}),"data":(.*)}\n', re.DOTALL)


def encode_record(number: int, body: bytes) -> bytes:
    """Encode a record: a line with the number, the JSON and a checksum."""
    rest = b'"n":%d,"data":%s}\n' % (number, body)
    return b'%s%08x",%s' % (_START, zlib.crc32(rest), rest)


def decode_record(line: bytes) -> tuple[int, bytes] | None:
    """Return the number and the body of a record; None if it is damaged."""
    rest = line[_PREFIX_LENGTH:]
    if not line.startswith(b'%s%08x",' % (_START, zlib.crc32(rest))):
        return None
    found = _RECORD.fullmatch(rest)
    return (int(found[1]), found[2]) if found else None
