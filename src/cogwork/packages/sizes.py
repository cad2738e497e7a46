"""Readable sizes."""

from __future__ import annotations

_UNITS = (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000))


def format_size(count: int) -> str:
    for unit, size in _UNITS:
        if count >= size:
            return (
                f"{count / size:.3g} {unit}" if count < 1000 * size else f"{count // size} {unit}"
            )
    return f"{count} bytes"
