"""A bounded queue on disk of log lines for the cloud, with at-least-once delivery.

Every line has a sequence number. A segment is a file of lines, named after its first number. The
ledger stores the number of the next line to deliver. If a number is missing when it is due, the
line was dropped: its segment was evicted, the line is damaged, the memory was full, or the cloud's
quota was used up. No other state is needed for exact counts, so they stay correct if the process is
killed: put = delivered + dropped + queued.

The following lines can be lost:

- If the process is killed: the lines that its thread had not written yet. These are the lines of
  the last milliseconds, or all lines in memory if the disk blocks. They are not counted.
- If the power fails: the lines that were not synced, which happens every five seconds. Lines that
  were not recorded in the ledger by then are not counted either.
- If the disk is full, read-only or missing: no lines until the memory is full. Then further lines
  are dropped and counted. Meanwhile, lines are delivered from memory.
- If files are damaged: the damaged lines, which are counted.

A line may be sent twice if the process ends while the line is being sent.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.logs.entry import Entry
from cogwork.logs.incoming_lines import IncomingLines
from cogwork.logs.record_codec import MAX_ENTRY_BYTES, RECORD_OVERHEAD
from cogwork.logs.segments import SegmentFiles
from cogwork.logs.spool_index import (
    NO_POSITION,
    Batch,
    Ledger,
    QueuedLine,
    SpoolCounts,
    collect_batch,
    count_delivered,
    count_excess,
    encode_fitting,
)

MAX_BYTES = 64 << 20
"""Maximum size of all segments in bytes."""
SEGMENT_BYTES = 1 << 20
"""Maximum size of one segment in bytes. Whole segments are evicted."""
MEMORY_BYTES = 4 << 20
"""Maximum size of the lines in memory, in bytes."""
BATCH_LINES = 100
SYNC_INTERVAL = 5.0
"""Seconds until written lines are synced to the disk."""
RETRY_INTERVAL = 1.0
"""Seconds between two attempts to use a disk that failed."""
FLUSH_TIMEOUT = 1.0
"""Seconds to write the pending lines on close."""

LOGGER = "rdk.networking.log_upload"
_log = logging.getLogger(LOGGER)


class SpoolInUse(CogworkError):
    """Another process uses the queue."""

    status = "FAILED_PRECONDITION"

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"the log queue in {directory} is in use by another process; "
            "stop that process, or give each server its own directory"
        )


class Spool:
    """A queue of log lines on disk. `put` never blocks; the other methods may wait for the disk."""

    def __init__(
        self,
        directory: Path,
        max_bytes: int = MAX_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
        memory_bytes: int = MEMORY_BYTES,
        retry: float = RETRY_INTERVAL,
    ) -> None:
        """Load the existing queue. Raise SpoolInUse. Disk errors are not raised."""
        if not RECORD_OVERHEAD < segment_bytes <= max_bytes // 2:
            raise ValueError(
                f"invalid limits of {segment_bytes} bytes per segment, {max_bytes} in total: a "
                f"segment needs more than {RECORD_OVERHEAD} bytes, and the total at least two "
                "segments"
            )
        self.directory = directory
        self.fault: str | None = None
        """Description of the current disk problem; None if there is none."""
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._retry = retry

        self._incoming = IncomingLines(
            memory_bytes, min(MAX_ENTRY_BYTES, segment_bytes - RECORD_OVERHEAD)
        )
        self._closed = threading.Event()

        # Held while waiting for the disk, so `put` must not acquire it.
        self._disk_lock = threading.Lock()
        self._files = SegmentFiles(directory)
        self._loaded = False
        self._ledger = Ledger("", position=0, following=0, dropped=0)
        self._ledger_unsaved = True
        self._unwritten: deque[tuple[int, bytes]] = deque()
        self._claimed_batch: Batch | None = None
        self._first_kept = 0
        """Number of the first kept line. Lines before it were dropped, but may still be on the
        disk."""
        self._read_position = NO_POSITION
        self._sync_at: float | None = None

        self._load_first()
        # A daemon: the process may exit while the thread waits for a disk that blocks.
        self._thread = threading.Thread(target=self._run, name="log-spool", daemon=True)
        self._thread.start()
        self._incoming.wake()

    def put(self, entry: Entry) -> None:
        """Queue an entry, from any thread or signal handler. Never block on the disk or raise an
        error."""
        self._incoming.put(entry)

    def flush(self, timeout: float = FLUSH_TIMEOUT) -> bool:
        """Wait until all lines are written or dropped. Return False if the timeout expires
        first."""
        return self._incoming.wait_until_empty(timeout)

    def notify_once(self, listener: Callable[[], object]) -> None:
        """Call the listener once, from another thread, when lines can be delivered."""
        self._incoming.notify_once(listener)

    def next_batch(self, limit: int = BATCH_LINES) -> Batch | None:
        """Return the next batch; None if no line is readable. Return the same batch until it is
        delivered.

        The notice about dropped lines counts towards `limit`.
        """
        with self._disk_lock:
            self._assign_numbers()
            if self._claimed_batch is None:
                self._claimed_batch = self._read_batch(limit)
            return self._claimed_batch

    def mark_delivered(self, batch: Batch) -> None:
        """Record that the batch, including its count of dropped lines, was delivered."""
        with self._disk_lock:
            # Ignore a batch that was read before the directory was replaced.
            if batch is not self._claimed_batch:
                return
            self._claimed_batch = None
            self._ledger.position = batch.stop
            self._ledger.dropped += batch.dropped
            self._forget_until(batch.stop)
            self._ledger_unsaved = True
            if self._loaded:
                with self._handling_disk_errors():
                    self._save_progress()
            if self._ledger_unsaved:
                self._incoming.wake()

    def drop_older(self, kept: int) -> int:
        """Drop all queued lines except the newest `kept`. Return the number of dropped lines.

        The next batch reports the dropped lines. If the process is killed before that, they are
        queued again.
        """
        with self._disk_lock:
            self._assign_numbers()
            stop = self._ledger.following - kept
            start = max(self._ledger.position, self._first_kept)
            if stop <= start:
                return 0
            self._first_kept = stop
            self._claimed_batch = None
            self._read_position = NO_POSITION
            return stop - start

    def counts(self) -> SpoolCounts:
        with self._disk_lock:
            self._assign_numbers()
            ledger = self._ledger
            delivered = ledger.position - ledger.dropped
            dropped = ledger.dropped + self._count_unreported_drops()
            return SpoolCounts(
                ledger.following, delivered, dropped, ledger.following - delivered - dropped
            )

    def close(self, timeout: float = FLUSH_TIMEOUT) -> None:
        """Write the pending lines until the timeout."""
        self._closed.set()
        self._incoming.interrupt()
        self._thread.join(timeout)

    def _run(self) -> None:
        closed = False
        while not closed:
            self._wait()
            # Read the flag before taking the lines, so that all lines before `close` are written.
            closed = self._closed.is_set()
            error = self._write_all(last=closed)
            self._report_disk_state(error)
            if self._ledger.position < self._ledger.following:
                self._incoming.notify()
        with self._disk_lock:
            self._loaded = False
            self._files.close()

    def _wait(self) -> None:
        """Wait for lines, for the next sync or, after a disk error, for the next attempt."""
        due = None if self._sync_at is None else max(0.0, self._sync_at - time.monotonic())
        if self.fault is not None:
            self._closed.wait(self._retry)
            due = 0.0
        self._incoming.wait(due)

    def _write_all(self, last: bool) -> OSError | None:
        with self._disk_lock, self._handling_disk_errors() as failure:
            self._assign_numbers()
            self._load()
            # Allocate the ledger before the lines can fill the disk.
            self._save_progress()
            while self._unwritten:
                self._write_some()
            is_due = last or (self._sync_at is not None and time.monotonic() >= self._sync_at)
            self._ledger_unsaved |= is_due
            self._save_progress()
            if is_due:
                self._files.sync()
                self._sync_at = None
        return failure.error

    @contextlib.contextmanager
    def _handling_disk_errors(self) -> Iterator[_DiskFailure]:
        """On a disk error, close the files. The next attempt loads them again."""
        failure = _DiskFailure()
        try:
            yield failure
        except OSError as error:
            failure.error = error
            self._loaded = False
            self._files.close_files()

    def _report_disk_state(self, error: OSError | None) -> None:
        before = self.fault
        self.fault = None if error is None else _describe_error(self.directory, error)
        # Log each change only once, because these lines enter the queue, too.
        if before is None and self.fault is not None:
            _log.warning("%s", self.fault)
        elif before is not None and self.fault is None:
            _log.info("the log queue in %s is writable again", self.directory)

    def _assign_numbers(self) -> None:
        """Assign sequence numbers. Dropped lines also consume a number."""
        pending, dropped = self._incoming.take()
        first = self._ledger.following
        self._unwritten.extend(enumerate(pending, first))
        self._ledger.following = first + len(pending) + dropped
        self._ledger_unsaved |= dropped > 0

    def _forget_until(self, stop: int) -> None:
        """Remove the lines before `stop`, which are written or delivered, from memory."""
        size = 0
        while self._unwritten and self._unwritten[0][0] < stop:
            size += len(self._unwritten.popleft()[1])
        self._incoming.forget(size)

    def _load_first(self) -> None:
        try:
            self._load()
        except BlockingIOError:
            raise SpoolInUse(self.directory) from None
        except OSError:
            self._files.close_files()  # The spool's thread tries again and reports the error.

    def _load(self) -> None:
        """Load the state from the disk, unless it is already loaded."""
        if self._loaded:
            return
        found, stop = self._files.load()
        segments = self._files.segments
        if found is None and segments and not self._ledger.queue:
            found = Ledger(secrets.token_hex(8), segments[0].first, stop, dropped=0)
        if found is not None and found.queue != self._ledger.queue:
            self._adopt_queue(found, max(found.following, found.position, stop))
        else:
            # If a failed write left lines intact on the disk, do not write them again.
            self._forget_until(stop)
        self._ledger.queue = self._ledger.queue or secrets.token_hex(8)
        self._ledger_unsaved, self._read_position, self._loaded = True, NO_POSITION, True

    def _adopt_queue(self, found: Ledger, following: int) -> None:
        """Switch to another queue on the disk. Append the lines in memory to it."""
        shift = following - self._ledger.position
        self._unwritten = deque((number + shift, body) for number, body in self._unwritten)
        found.following = self._ledger.following + shift
        self._ledger = found
        self._claimed_batch = None
        self._first_kept = 0

    def _write_some(self) -> None:
        """Write as many lines as fit into one segment."""
        portion = encode_fitting(self._unwritten, self._files.remaining_bytes(self._segment_bytes))
        if not portion:
            self._files.begin_segment(self._unwritten[0][0])
            portion = encode_fitting(self._unwritten, self._segment_bytes)
        lines = b"".join(portion)
        segments = self._files.segments
        self._files.remove_oldest(count_excess(segments, self._max_bytes - len(lines)))
        self._files.append(lines)
        self._forget_until(self._unwritten[len(portion) - 1][0] + 1)
        self._schedule_sync()

    def _save_progress(self) -> None:
        """Save the ledger, then delete the delivered segments."""
        if self._ledger_unsaved:
            # Only count written lines: a kill destroys the lines in memory, which must not be
            # counted.
            self._files.save_ledger(replace(self._ledger, following=self._first_unwritten()))
            self._ledger_unsaved = bool(self._unwritten)
            self._schedule_sync()
        used = count_delivered(self._files.segments, self._ledger.position)
        if used:
            # Sync the ledger first: a power failure could otherwise lose both the lines and the
            # record of their delivery.
            self._files.sync()
            self._files.remove_oldest(used)

    def _schedule_sync(self) -> None:
        if self._sync_at is None:
            self._sync_at = time.monotonic() + SYNC_INTERVAL

    def _read_batch(self, limit: int) -> Batch | None:
        with self._handling_disk_errors():
            self._load()
        if not self._loaded and self._files.segments:
            return None  # Wait for the disk: lines in segments come before lines in memory.
        end = self._files.end_position()
        first = max(self._ledger.position, self._first_kept)
        on_disk = self._files.read_lines(first, self._first_unwritten(), self._read_position)
        in_memory = (QueuedLine(number, body, end) for number, body in self._unwritten)
        try:
            with contextlib.closing(on_disk):
                # Skip lines before the first kept line, which a segment may contain.
                lines = (line for line in chain(on_disk, in_memory) if line.number >= first)
                batch, position = collect_batch(
                    lines, self._ledger.position, self._ledger.following, limit
                )
        except OSError:
            return None
        self._read_position = position or end
        return batch if batch.stop > batch.start else None

    def _first_unwritten(self) -> int:
        """Return the first number that is not on the disk."""
        return self._unwritten[0][0] if self._unwritten else self._ledger.following

    def _count_unreported_drops(self) -> int:
        """Return the number of lines that were dropped but not reported yet."""
        claimed, segments = self._claimed_batch, self._files.segments
        oldest = segments[0].first if segments else self._first_unwritten()
        oldest = max(oldest, self._first_kept)
        start = claimed.stop if claimed else self._ledger.position
        return max(0, oldest - start) + (claimed.dropped if claimed else 0)


@dataclass
class _DiskFailure:
    error: OSError | None = None


def _describe_error(directory: Path, error: OSError) -> str:
    in_use = isinstance(error, BlockingIOError)
    why = "it is in use by another process" if in_use else os_reason(error)
    return (
        f"the log queue in {directory} cannot be written: {why}; "
        "keeping lines in memory, and dropping those that do not fit"
    )
