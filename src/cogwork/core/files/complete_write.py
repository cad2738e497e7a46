"""Write all of some bytes to a file descriptor: one call of `os.write` may write a part."""

from __future__ import annotations

import os


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
