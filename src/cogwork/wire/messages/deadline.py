"""Reads the deadline of a call from its metadata."""

from __future__ import annotations

from grpclib.metadata import Deadline

from cogwork.core.errors import InvalidRequest

_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_MAX_DIGITS = 8


def parse_deadline(text: str | None) -> Deadline | None:
    """Parse the value of `grpc-timeout`. Raise InvalidRequest if it is invalid."""
    if text is None:
        return None
    digits, unit = text[:-1], text[-1:]
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
    if not is_number or unit not in _UNITS:
        raise InvalidRequest(f"grpc-timeout is not valid: {text[:20]!r}")
    return Deadline.from_timeout(int(digits) * _UNITS[unit])
