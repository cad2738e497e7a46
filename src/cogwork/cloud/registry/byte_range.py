"""The byte range of a file that an HTTP request asks for."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cogwork.core.errors import CogworkError

_RANGE: Final = re.compile(r"bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})", re.ASCII)


class ByteRange(NamedTuple):
    start: int
    end: int
    """The position after the last byte."""


class UnsatisfiableRange(CogworkError):
    """The range begins after the end of the file."""

    status = "OUT_OF_RANGE"


def parse_range(header: str, size: int) -> ByteRange | None:
    """Return the range in a `Range` header; None for the whole file.

    As HTTP allows, malformed headers and multiple ranges also return None. Raise
    UnsatisfiableRange.
    """
    match = _RANGE.fullmatch(header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if not first:
        start, end = max(0, size - int(last)), size
    else:
        start, end = int(first), size if not last else min(size, int(last) + 1)
        if last and int(last) < start:
            return None
    if start >= end:
        raise UnsatisfiableRange(f"the range is outside of the file, which has {size} bytes")
    return ByteRange(start, end)
