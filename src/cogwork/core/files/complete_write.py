"""Write all bytes to a file descriptor. One call of `os.write` may write only some of them."""

from __future__ import annotations

import os


def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
