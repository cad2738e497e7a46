"""Writes lines in a background thread, so that log calls do not block on a full disk or a slow
reader."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

MAX_PENDING_BYTES = 8 << 20
"""Maximum size of the pending lines in bytes, excluding lines that are being written. Further lines
are dropped and counted."""
FLUSH_TIMEOUT = 1.0
"""Seconds to write the pending lines on close."""

Write = Callable[[bytes], None]
"""A function that writes whole lines. It may block, and never raises an error."""


class Sink:
    """A queue of lines. Its thread writes them in order, all pending lines at a time."""

    def __init__(self, name: str, write: Write, max_bytes: int = MAX_PENDING_BYTES) -> None:
        self._write = write
        self._max_bytes = max_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._dropped_count = 0
        self._closed = False
        # Reentrant: a signal handler or a destructor may log while its thread is inside `put`.
        self._lock = threading.RLock()
        # A queue, not a condition: a condition would lose a notification that comes just before the
        # wait.
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._notified = False
        # A daemon: the process may exit while the thread waits for a blocked reader.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, line: bytes) -> None:
        """Queue a line, which must end with a line break."""
        with self._lock:
            # If a line is dropped, drop the lines after it, too, so that there is only one gap.
            if self._dropped_count or self._size + len(line) > self._max_bytes:
                self._dropped_count += 1
            else:
                self._size += len(line)
                self._lines.append(line)
            if not self._notified:
                self._notified = True
                self._wakeups.put(None)

    def close(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Write the pending lines until the timeout."""
        self._closed = True
        self._wakeups.put(None)
        self._thread.join(timeout)

    def _run(self) -> None:
        closed = False
        while not closed:
            self._wakeups.get()
            # Read the flag before taking the lines, so that all lines before `close` are written.
            closed = self._closed
            while lines := self._take_pending():
                self._write(lines)

    def _take_pending(self) -> bytes:
        """Remove and return all pending lines."""
        with self._lock:
            self._notified = False
            lines, self._lines = self._lines, []
            dropped, self._dropped_count = self._dropped_count, 0
            self._size = 0
        if dropped:
            lines.append(
                format_missing_notice(dropped, "they were logged faster than they could be written")
            )
        return b"".join(lines)


def format_missing_notice(count: int, why: str) -> bytes:
    """Return a notice that replaces the dropped lines."""
    lines = "line" if count == 1 else "lines"
    return f"dropped {count} {lines} here: {why}\n".encode(errors="replace")
