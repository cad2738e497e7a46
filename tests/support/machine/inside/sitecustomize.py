r"""Python runs this inside the server under test, to measure the lag of its event loop.

It is not part of the server: a test puts this folder on its path, and reads the values from a file.
"""

import asyncio
import ctypes
import mmap
import os
import struct
import time
from pathlib import Path

FILE = "COGWORK_TEST_LAG_FILE"
LAYOUT = struct.Struct("dd?")
"""Seconds that a turn of the loop was late at most, those it computed, and whether to trim."""
EVERY = 0.005


class _Lag:
    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), LAYOUT.size)
        self._expected = 0.0
        self._computed = 0.0

    def start(self) -> None:
        self._expected = time.monotonic() + EVERY
        self._computed = time.thread_time()
        self._loop.call_later(EVERY, self._tick)

    def _tick(self) -> None:
        late = time.monotonic() - self._expected
        # On a busy computer, the loop may be late without having computed anything.
        busy = min(late, time.thread_time() - self._computed)
        latest, busiest, trim = LAYOUT.unpack(self._shared[:])
        self._shared[:] = LAYOUT.pack(max(late, latest), max(busy, busiest), False)
        if trim:
            # Memory that the allocator keeps for reuse is not needed by the server.
            ctypes.CDLL(None).malloc_trim(0)
        self.start()


def _install(path: Path) -> None:
    try:
        import uvloop
    except ImportError:
        return
    make = uvloop.new_event_loop

    def create_watched_loop() -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = make()
        loop.call_soon(_Lag(loop, path).start)
        return loop

    uvloop.new_event_loop = create_watched_loop  # type: ignore[assignment]


if path := os.environ.get(FILE):
    _install(Path(path))
