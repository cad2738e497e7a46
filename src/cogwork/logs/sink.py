"""Where lines go that nobody waits for: a disk may be full, a terminal slow, a reader gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

MOST = 16 << 20
"""Bytes that wait to be written. What comes on top of them is left out, and counted."""
PATIENCE = 1.0
"""Seconds that what waits gets at the end."""

Write = Callable[[bytes], None]
"""Writes whole lines. Blocks as long as it must, and raises nothing."""


class Sink:
    """A thread of its own writes what it is given, in order, as much at a time as there is."""

    def __init__(self, name: str, write: Write, most: int = MOST) -> None:
        self._write = write
        self._most = most
        self._lines: list[bytes] = []
        self._size = 0
        self._left_out = 0
        self._closed = False
        # A signal handler or a destructor may put a line while its thread is inside put.
        self._lock = threading.RLock()
        # A condition would forget what it is told between the last look and the wait for it.
        self._news: SimpleQueue[None] = SimpleQueue()
        self._told = False
        # A daemon: the process may end while it waits for a reader that does not come back.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """A line with its line break."""
        with self._lock:
            # Once one is left out, so are those behind it: what is missing is missing in one place.
            if self._left_out or self._size + len(line) > self._most:
                self._left_out += 1
            else:
                self._size += len(line)
                self._lines.append(line)
            if not self._told:
                self._told = True
                self._news.put(None)

    def close(self, patience: float = PATIENCE) -> None:
        """Writes what waits, as long as patience lasts."""
        self._closed = True
        self._news.put(None)
        self._thread.join(patience)

    def _run(self) -> None:
        closed = False
        while not closed:
            self._news.get()
            # Read ahead of the last look, which then finds all that was put before the end.
            closed = self._closed
            while lines := self._taken():
                self._write(lines)

    def _taken(self) -> bytes:
        """All that waits."""
        with self._lock:
            self._told = False
            lines, self._lines = self._lines, []
            left_out, self._left_out = self._left_out, 0
            self._size = 0
        if left_out:
            lines.append(missing(left_out, "they came faster than they were written"))
        return b"".join(lines)


def missing(count: int, why: str) -> bytes:
    """The line in the place of those that were left out."""
    lines = "line is" if count == 1 else "lines are"
    return f"{count} {lines} missing here: {why}\n".encode(errors="replace")
