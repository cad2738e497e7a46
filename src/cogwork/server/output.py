"""Standard output, for which the server never waits: its reader may be slow, stuck or gone."""

from __future__ import annotations

import os
import select
import threading
from queue import SimpleQueue

MOST = 16 << 20
"""Bytes that wait for the reader. What comes on top of them is left out, and counted."""
PATIENCE = 1.0
"""Seconds that what waits gets at the end."""


class Output:
    """A thread of its own writes what it is given, in order."""

    def __init__(self, descriptor: int, most: int = MOST) -> None:
        self._descriptor = descriptor
        self._most = most
        self._texts: SimpleQueue[bytes | None] = SimpleQueue()
        # A signal may have something to say while the thread it interrupts says something.
        self._lock = threading.RLock()
        self._waiting = 0
        self._left_out = 0
        # A daemon: the process may end while it waits for a reader that does not come back.
        self._thread = threading.Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()

    def line(self, text: str) -> None:
        self.write(f"{text}\n")

    def write(self, text: str) -> None:
        data = text.encode(errors="backslashreplace")
        with self._lock:
            if self._waiting + len(data) > self._most:
                self._left_out += 1
                return
            self._say_what_is_missing()
            self._put(data)

    def flush(self) -> None:
        """It is written as soon as it can be."""

    def close(self) -> None:
        with self._lock:
            self._say_what_is_missing()
            self._texts.put(None)
        self._thread.join(PATIENCE)

    def _say_what_is_missing(self) -> None:
        if self._left_out:
            self._put(b"%d lines are missing: nobody read the log in time\n" % self._left_out)
            self._left_out = 0

    def _put(self, data: bytes) -> None:
        self._waiting += len(data)
        self._texts.put(data)

    def _write_all(self) -> None:
        while (data := self._texts.get()) is not None:
            _write(self._descriptor, data)
            with self._lock:
                self._waiting -= len(data)


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[_written(descriptor, data) :]
    except OSError:
        pass  # Nobody reads it any more, which is no reason to stop.


def _written(descriptor: int, data: bytes) -> int:
    try:
        return os.write(descriptor, data)
    except BlockingIOError:
        # Whoever started the server may have made it so.
        select.select([], [descriptor], [])
        return 0
