"""Log lines in memory, from the log call until the spool's thread has written them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from cogwork.logs.entry import Entry
from cogwork.logs.record_codec import encode_entry


class IncomingLines:
    """Log lines in memory. Only `wait` and `wait_until_empty` block."""

    def __init__(self, max_bytes: int, max_entry_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_entry_bytes = max_entry_bytes
        # Reentrant: a signal handler or a destructor may log while its thread is inside `put`.
        self._lock = threading.RLock()
        self._pending: list[bytes] = []
        self._overflow_count = 0
        self._bytes = 0
        """Bytes of the lines that are pending, or were taken but not forgotten yet."""
        self._emptied = threading.Condition(self._lock)
        # A queue, not a condition: a condition would lose a notification that comes just before the
        # wait.
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._is_awake = False
        self._listener: Callable[[], object] | None = None

    def put(self, entry: Entry) -> None:
        """Add an entry, from any thread or signal handler.

        If the entry is too large or the memory is full, count it as dropped.
        """
        try:
            body = encode_entry(entry)
        except Exception:
            # A log call must not fail because its entry cannot be encoded.
            body = None
        size = len(body or b"")
        with self._lock:
            if body is None or size > self._max_entry_bytes or self._bytes + size > self._max_bytes:
                self._overflow_count += 1
            else:
                self._bytes += size
                self._pending.append(body)
            self.wake()

    def take(self) -> tuple[list[bytes], int]:
        """Return the pending lines, and the number of dropped lines.

        The returned lines use memory until `forget` is called.
        """
        with self._lock:
            self._is_awake = False
            pending, self._pending = self._pending, []
            dropped, self._overflow_count = self._overflow_count, 0
        return pending, dropped

    def forget(self, size: int) -> None:
        """Release the memory of lines that were taken."""
        with self._lock:
            self._bytes -= size
            if not self._bytes:
                self._emptied.notify_all()

    def wait_until_empty(self, timeout: float) -> bool:
        """Wait until all lines are forgotten. Return False if the timeout expires first."""
        with self._emptied:
            return self._emptied.wait_for(lambda: not self._bytes, timeout)

    def wake(self) -> None:
        """Wake up the waiting thread, unless it was woken since it last took lines."""
        with self._lock:
            if not self._is_awake:
                self._is_awake = True
                self._wakeups.put(None)

    def interrupt(self) -> None:
        """Wake up the waiting thread, even if it was woken since it last took lines."""
        self._wakeups.put(None)

    def wait(self, timeout: float | None) -> None:
        """Wait for lines until the timeout."""
        with contextlib.suppress(Empty):
            self._wakeups.get(timeout=timeout)

    def notify_once(self, listener: Callable[[], object]) -> None:
        with self._lock:
            self._listener = listener

    def notify(self) -> None:
        """Call the listener and remove it."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            # The event loop of the listener may be closed.
            with contextlib.suppress(RuntimeError):
                listener()
