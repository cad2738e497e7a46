"""Log lines in memory, from the log call until the thread of the spool has written them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from cogwork.logs.entry import Entry
from cogwork.logs.record_codec import encode_entry


class IncomingLines:
    """No method but `wait` and `wait_until_empty` blocks."""

    def __init__(self, max_bytes: int, max_entry_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._max_entry_bytes = max_entry_bytes
        # Reentrant: a signal handler or a destructor may log while its thread is inside put.
        self._lock = threading.RLock()
        self._pending: list[bytes] = []
        self._overflow_count = 0
        self._bytes = 0
        """Bytes of the lines that are pending, or taken and not forgotten yet."""
        self._emptied = threading.Condition(self._lock)
        # A condition would lose a notification between the last check and the wait.
        self._wakeups: SimpleQueue[None] = SimpleQueue()
        self._is_awake = False
        self._listener: Callable[[], object] | None = None

    def put(self, entry: Entry) -> None:
        """Add an entry, from any thread or signal handler. Count it as dropped if it is too large
        or memory is full."""
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
        """Return the pending lines, which count until they are forgotten, and how many others were
        dropped."""
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
        """Return whether all lines are forgotten before the timeout."""
        with self._emptied:
            return self._emptied.wait_for(lambda: not self._bytes, timeout)

    def wake(self) -> None:
        """End the wait of the thread, unless that was done since it last took lines."""
        with self._lock:
            if not self._is_awake:
                self._is_awake = True
                self._wakeups.put(None)

    def interrupt(self) -> None:
        """End the wait of the thread in any case."""
        self._wakeups.put(None)

    def wait(self, timeout: float | None) -> None:
        """Wait for lines, or until the timeout."""
        with contextlib.suppress(Empty):
            self._wakeups.get(timeout=timeout)

    def notify_once(self, listener: Callable[[], object]) -> None:
        with self._lock:
            self._listener = listener

    def notify(self) -> None:
        """Call the listener, which is then forgotten."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            # The event loop of the listener may be closed.
            with contextlib.suppress(RuntimeError):
                listener()
