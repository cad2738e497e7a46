"""The queue of lines that wait for the cloud: on disk, bounded, each delivered at least once.

Every line has a number, and the numbers are the account. A segment is a file of lines, named after
the first of them; the ledger says which number is to be delivered next. A number that is not found
when its turn comes was dropped, whatever took it: its segment made room for others, its line is
damaged, memory was full. Nothing else has to be remembered for the account to be exact, so a kill
cannot falsify it: put = delivered + dropped + queued.

What can be lost:

- The end of the process, however sudden, loses what its thread had not yet written: a few
  milliseconds of lines, or what waits for a disk that does not take them. They are in no count.
- A power cut loses what the disk had not yet taken, which it is made to every five seconds. Lines
  that were not in the ledger by then are in no count either.
- A disk that is full, read-only or gone loses nothing until memory is full; what comes on top of
  that is dropped and counted. Meanwhile lines are delivered from memory.
- Damage loses the damaged lines, and those are counted.

A line that was sent when the process ended may be sent again.
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
from queue import Empty, SimpleQueue
from typing import NamedTuple

from cogwork.core.errors import CogworkError
from cogwork.logs.account import (
    NOWHERE,
    Batch,
    Ledger,
    Line,
    excess,
    fitting,
    gather,
    used_up,
)
from cogwork.logs.entry import Entry
from cogwork.logs.sealed import LONGEST, OVERHEAD, encode
from cogwork.logs.segments import SegmentFiles

MOST = 64 << 20
"""Bytes of all segments together."""
SEGMENT = 1 << 20
"""Bytes of one segment: what is dropped at once when there are too many."""
MEMORY = 4 << 20
"""Bytes that wait to be written."""
BATCH = 100
SYNC = 5.0
"""Seconds until what was written is forced to the disk."""
RETRY = 1.0
"""Seconds until a disk that failed is tried again."""
PATIENCE = 1.0
"""Seconds that what waits gets at the end."""

LOGGER = "rdk.networking.log_upload"
_log = logging.getLogger(LOGGER)


class InUse(CogworkError):
    """Another process has the queue."""

    status = "FAILED_PRECONDITION"

    def __init__(self, directory: Path) -> None:
        super().__init__(
            f"the log queue in {directory} is in use by another process; "
            "end that one, or give each server a directory of its own"
        )


class Counts(NamedTuple):
    """Since the queue was first made. put = delivered + dropped + queued.

    Lines that are damaged or did not fit into memory are found when their turn comes; until then
    they count as queued.
    """

    put: int
    delivered: int
    dropped: int
    queued: int


class Spool:
    """`put` is for anybody; the other methods wait for the disk."""

    def __init__(
        self,
        directory: Path,
        most_bytes: int = MOST,
        segment_bytes: int = SEGMENT,
        memory_bytes: int = MEMORY,
        retry: float = RETRY,
    ) -> None:
        """Reads what is there. Raises InUse, and nothing else, whatever state the disk is in."""
        if not OVERHEAD < segment_bytes <= most_bytes // 2:
            raise ValueError(
                f"segments of {segment_bytes} bytes, {most_bytes} in total: a segment needs more "
                f"than {OVERHEAD} bytes, and all together at least as much as two"
            )
        self.directory = directory
        self.trouble: str | None = None
        """A sentence about what is wrong with the disk at present."""
        self._most_bytes = most_bytes
        self._segment_bytes = segment_bytes
        self._memory_bytes = memory_bytes
        self._longest = min(LONGEST, segment_bytes - OVERHEAD)
        self._retry = retry

        # A signal handler or a destructor may put a line while its thread is inside put.
        self._lock = threading.RLock()
        self._waiting: list[bytes] = []
        self._left_out = 0
        self._size = 0
        """Bytes in memory: those that wait, and those that are numbered and unwritten."""
        self._emptied = threading.Condition(self._lock)
        # A condition would forget what it is told between the last look and the wait for it.
        self._news: SimpleQueue[None] = SimpleQueue()
        self._told = False
        self._listener: Callable[[], object] | None = None
        self._closed = threading.Event()

        # Whoever holds this may wait for the disk, so nobody may wait for it in put.
        self._disk = threading.Lock()
        self._files = SegmentFiles(directory)
        self._loaded = False
        self._ledger = Ledger("", position=0, following=0, dropped=0)
        self._unsaved = True
        self._unwritten: deque[tuple[int, bytes]] = deque()
        self._claimed: Batch | None = None
        self._mark = NOWHERE
        self._sync_at: float | None = None

        self._load_first()
        # A daemon: the process may end while it waits for a disk that does not answer.
        self._thread = threading.Thread(target=self._run, name="log-spool", daemon=True)
        self._thread.start()
        self._wake()

    def put(self, entry: Entry) -> None:
        """From any thread or signal handler. Waits for no disk, and raises nothing."""
        try:
            body = encode(entry)
        except Exception:
            # Whatever it is that cannot be encoded, the log is not the place to fail for it.
            body = None
        size = len(body or b"")
        with self._lock:
            if body is None or size > self._longest or self._size + size > self._memory_bytes:
                self._left_out += 1
            else:
                self._size += size
                self._waiting.append(body)
            self._wake()

    def flush(self, patience: float = PATIENCE) -> bool:
        """Whether all that was put is on the disk, or was dropped."""
        with self._emptied:
            return self._emptied.wait_for(lambda: not self._size, patience)

    def tell(self, listener: Callable[[], object]) -> None:
        """Call it once, from another thread, when something is there to be delivered."""
        with self._lock:
            self._listener = listener

    def batch(self, most: int = BATCH) -> Batch | None:
        """What to deliver next: the same until it is done. None: nothing, or nothing readable.

        The line about those that were dropped has its place among the `most`.
        """
        with self._disk:
            self._take()
            if self._claimed is None:
                self._claimed = self._read(most)
            return self._claimed

    def done(self, batch: Batch) -> None:
        """It has arrived, and so has the number of those that were dropped."""
        with self._disk:
            # The directory may have been exchanged for another since it was read.
            if batch is not self._claimed:
                return
            self._claimed = None
            self._ledger.position = batch.stop
            self._ledger.dropped += batch.dropped
            self._forget(batch.stop)
            self._unsaved = True
            if self._loaded:
                with self._failing():
                    self._settle()
            if self._unsaved:
                self._wake()

    def counts(self) -> Counts:
        with self._disk:
            self._take()
            ledger = self._ledger
            delivered = ledger.position - ledger.dropped
            dropped = ledger.dropped + self._gap()
            return Counts(
                ledger.following, delivered, dropped, ledger.following - delivered - dropped
            )

    def close(self, patience: float = PATIENCE) -> None:
        """Writes what waits, as long as patience lasts."""
        self._closed.set()
        self._news.put(None)
        self._thread.join(patience)

    def _wake(self) -> None:
        with self._lock:
            if not self._told:
                self._told = True
                self._news.put(None)

    def _run(self) -> None:
        closed = False
        while not closed:
            self._wait()
            # Read ahead of the last look, which then finds all that was put before the end.
            closed = self._closed.is_set()
            error = self._write_all(last=closed)
            self._say(error)
            if self._ledger.position < self._ledger.following:
                self._tell()
        with self._disk:
            self._loaded = False
            self._files.close()

    def _wait(self) -> None:
        """For something to do; with a disk that failed, for the time to try it again."""
        due = None if self._sync_at is None else max(0.0, self._sync_at - time.monotonic())
        if self.trouble is not None:
            self._closed.wait(self._retry)
            due = 0.0
        with contextlib.suppress(Empty):
            self._news.get(timeout=due)

    def _write_all(self, last: bool) -> OSError | None:
        with self._disk, self._failing() as failure:
            self._take()
            self._load()
            # The ledger has its place on the disk before the lines can take it.
            self._settle()
            while self._unwritten:
                self._write_some()
            is_due = last or (self._sync_at is not None and time.monotonic() >= self._sync_at)
            self._unsaved |= is_due
            self._settle()
            if is_due:
                self._files.sync()
                self._sync_at = None
        return failure.error

    @contextlib.contextmanager
    def _failing(self) -> Iterator[_Failure]:
        """Whatever the disk refuses, it is looked at afresh the next time."""
        failure = _Failure()
        try:
            yield failure
        except OSError as error:
            failure.error = error
            self._loaded = False
            self._files.let_go()

    def _say(self, error: OSError | None) -> None:
        before = self.trouble
        self.trouble = None if error is None else _sentence(self.directory, error)
        # Once each: these lines are put into the queue, too.
        if before is None and self.trouble is not None:
            _log.warning("%s", self.trouble)
        elif before is not None and self.trouble is None:
            _log.info("the log queue in %s can be written again", self.directory)

    def _tell(self) -> None:
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            # Its loop may have ended.
            with contextlib.suppress(RuntimeError):
                listener()

    def _take(self) -> None:
        """Give what waits its numbers; those that were left out get some that nobody has."""
        with self._lock:
            self._told = False
            waiting, self._waiting = self._waiting, []
            left_out, self._left_out = self._left_out, 0
        first = self._ledger.following
        self._unwritten.extend(enumerate(waiting, first))
        self._ledger.following = first + len(waiting) + left_out
        self._unsaved |= left_out > 0

    def _forget(self, stop: int) -> None:
        """What is on disk or delivered need not be in memory."""
        size = 0
        while self._unwritten and self._unwritten[0][0] < stop:
            size += len(self._unwritten.popleft()[1])
        with self._lock:
            self._size -= size
            if not self._size:
                self._emptied.notify_all()

    def _load_first(self) -> None:
        try:
            self._load()
        except BlockingIOError:
            raise InUse(self.directory) from None
        except OSError:
            self._files.let_go()  # The thread tries again, and says what is wrong.

    def _load(self) -> None:
        """Find out what is on the disk, unless that is known."""
        if self._loaded:
            return
        found, stop = self._files.load()
        segments = self._files.segments
        if found is None and segments and not self._ledger.queue:
            found = Ledger(secrets.token_hex(8), segments[0].first, stop, dropped=0)
        if found is not None and found.queue != self._ledger.queue:
            self._adopt(found, max(found.following, found.position, stop))
        else:
            # What a write that failed left whole on the disk need not be written again.
            self._forget(stop)
        self._ledger.queue = self._ledger.queue or secrets.token_hex(8)
        self._unsaved, self._mark, self._loaded = True, NOWHERE, True

    def _adopt(self, found: Ledger, following: int) -> None:
        """Another queue than the one so far: what is in memory comes behind what is there."""
        shift = following - self._ledger.position
        self._unwritten = deque((number + shift, body) for number, body in self._unwritten)
        found.following = self._ledger.following + shift
        self._ledger = found
        self._claimed = None

    def _write_some(self) -> None:
        """As much as one segment takes."""
        portion = fitting(self._unwritten, self._files.room(self._segment_bytes))
        if not portion:
            self._files.begin(self._unwritten[0][0])
            portion = fitting(self._unwritten, self._segment_bytes)
        lines = b"".join(portion)
        segments = self._files.segments
        self._files.remove(excess(segments, self._most_bytes - len(lines)))
        self._files.append(lines)
        self._forget(self._unwritten[len(portion) - 1][0] + 1)
        self._sync_soon()

    def _settle(self) -> None:
        """Write down how far it is, then remove the segments that nobody needs any more."""
        if self._unsaved:
            # Not further than the disk is: what a kill takes from memory was never in the count.
            self._files.save(replace(self._ledger, following=self._written()))
            self._unsaved = bool(self._unwritten)
            self._sync_soon()
        used = used_up(self._files.segments, self._ledger.position)
        if used:
            # Else a power cut could leave neither the lines nor the word that they arrived.
            self._files.sync()
            self._files.remove(used)

    def _sync_soon(self) -> None:
        if self._sync_at is None:
            self._sync_at = time.monotonic() + SYNC

    def _read(self, most: int) -> Batch | None:
        with self._failing():
            self._load()
        if not self._loaded and self._files.segments:
            return None  # They may still be there, and come ahead of what is in memory.
        end = self._files.end()
        on_disk = self._files.lines(self._ledger.position, self._written(), self._mark)
        in_memory = (Line(number, body, end) for number, body in self._unwritten)
        try:
            with contextlib.closing(on_disk):
                lines = chain(on_disk, in_memory)
                batch, place = gather(lines, self._ledger.position, self._ledger.following, most)
        except OSError:
            return None
        self._mark = place or end
        return batch if batch.stop > batch.start else None

    def _written(self) -> int:
        """The number after the last one that needs no writing."""
        return self._unwritten[0][0] if self._unwritten else self._ledger.following

    def _gap(self) -> int:
        """How many are known to be dropped, and not yet reported."""
        claimed, segments = self._claimed, self._files.segments
        oldest = segments[0].first if segments else self._written()
        start = claimed.stop if claimed else self._ledger.position
        return max(0, oldest - start) + (claimed.dropped if claimed else 0)


@dataclass
class _Failure:
    error: OSError | None = None


def _sentence(directory: Path, error: OSError) -> str:
    in_use = isinstance(error, BlockingIOError)
    why = "another process uses it" if in_use else error.strerror or str(error)
    return (
        f"the log queue in {directory} cannot be written: {why}; "
        "lines wait in memory until it can, and those that do not fit are dropped"
    )
