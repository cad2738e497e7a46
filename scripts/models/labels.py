"""Conversion of label files."""

from __future__ import annotations


def convert_to_dense(numbered: bytes) -> bytes:
    """Convert lines of `id  name` to one line per class id; missing ids get a generated name."""
    names = dict(line.split(maxsplit=1) for line in numbered.decode().splitlines())
    count = max(map(int, names)) + 1
    lines = [names.get(str(number), f"n/a_{number}") for number in range(count)]
    return "\n".join([*lines, ""]).encode()
