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
import errno
import fcntl
import json
import logging
import os
import re
import secrets
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO, NamedTuple

from cogwork.core.errors import CogworkError
from cogwork.logs.entry import Entry

MOST = 64 << 20
"""Bytes of all segments together."""
SEGMENT = 1 << 20
"""Bytes of one segment: what is dropped at once when there are too many."""
MEMORY = 4 << 20
"""Bytes that wait to be written."""
LONGEST = 256 << 10
"""Bytes of one line. A longer one is dropped."""
BATCH = 100
BATCH_BYTES = 1 << 20
"""A message of gRPC may have four times as many."""
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


class Batch(NamedTuple):
    start: int
    stop: int
    """The number after its last line."""
    entries: Sequence[Entry]
    more: bool
    """Whether others waited behind it."""

    @property
    def dropped(self) -> int:
        """How many lines should be among these and are not."""
        return self.stop - self.start - len(self.entries)


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
        self._files = _Files(directory)
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


class Place(NamedTuple):
    segment: int
    offset: int


NOWHERE = Place(-1, 0)


class Line(NamedTuple):
    number: int
    body: bytes
    place: Place


@dataclass(slots=True)
class Segment:
    first: int
    """The number of its first line; the next segment's is where it ends."""
    size: int


@dataclass(slots=True)
class Ledger:
    queue: str
    """Tells this queue from another in the same place."""
    position: int
    """The number to be delivered next. All before it were delivered or dropped."""
    following: int
    """The number that the next line gets."""
    dropped: int


def gather(lines: Iterable[Line], start: int, end: int, most: int) -> tuple[Batch, Place | None]:
    """A batch, and where the first line behind it is."""
    entries: list[Entry] = []
    stop, size = start, 0
    for number, body, place in lines:
        if number < stop:
            continue
        # The line that tells how many are missing takes the place of one.
        room = most if number - start == len(entries) else most - 1
        size += len(body)
        if len(entries) >= room or (entries and size > BATCH_BYTES):
            return Batch(start, stop if entries else number, entries, more=True), place
        if (entry := decode(body)) is not None:
            entries.append(entry)
            stop = number + 1
    if len(entries) == most and stop < end:
        return Batch(start, stop, entries, more=True), None
    return Batch(start, end, entries, more=False), None


def excess(segments: Sequence[Segment], most: int) -> int:
    """How many of the oldest must go. Never the last, which is being written."""
    total = sum(segment.size for segment in segments)
    count = 0
    while total > most and count < len(segments) - 1:
        total -= segments[count].size
        count += 1
    return count


def used_up(segments: Sequence[Segment], position: int) -> int:
    """How many of the oldest hold nothing that is still to be delivered."""
    return sum(following.first <= position for _, following in pairwise(segments))


def spans(segments: Sequence[Segment], end: int) -> Iterator[tuple[Segment, int]]:
    """Each with the number at which it ends."""
    ends = [*(segment.first for segment in segments[1:]), end]
    return zip(segments, ends, strict=False)


def fitting(lines: Iterable[tuple[int, bytes]], room: int) -> list[bytes]:
    """As many of the first lines, ready to be written, as there is room for."""
    portion: list[bytes] = []
    for number, body in lines:
        line = seal(number, body)
        room -= len(line)
        if room < 0:
            break
        portion.append(line)
    return portion


def survey(pieces: Iterable[bytes], first: int) -> tuple[int, int]:
    """The number after the last whole line of a segment, and the size without a torn one."""
    stop, size, whole = first, 0, 0
    for piece in pieces:
        size += len(piece)
        if piece.endswith(b"\n"):
            whole = size
        if found := unseal(piece):
            stop = found[0] + 1
    return stop, whole


def encode(entry: Entry) -> bytes:
    """Fields that JSON does not know become text. Half of a surrogate pair becomes "?"."""
    value: dict[str, object] = {
        "time": entry.time,
        "level": entry.level,
        "logger": entry.logger,
        "place": entry.place,
        "message": entry.message,
    }
    if entry.fields:
        value["fields"] = entry.fields
    if entry.trace:
        value["trace"] = entry.trace
    return _json.encode(value).encode(errors="replace")


def decode(body: bytes) -> Entry | None:
    """None if another version wrote what this one cannot read."""
    try:
        return Entry(**json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None


_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)

OVERHEAD = 64
"""Bytes that sealing adds, at most."""
_START = b'{"crc":"'
_REST = len(_START) + len('01234567",')


def seal(number: int, body: bytes) -> bytes:
    """A line of JSON that shows whether it is whole."""
    rest = b'"n":%d,"data":%s}\n' % (number, body)
    return b'%s%08x",%s' % (_START, zlib.crc32(rest), rest)


def unseal(line: bytes) -> tuple[int, bytes] | None:
    """None if it is damaged."""
    rest = line[_REST:]
    if not line.startswith(b'%s%08x",' % (_START, zlib.crc32(rest))):
        return None
    number, _, body = rest.removeprefix(b'"n":').removesuffix(b"}\n").partition(b',"data":')
    return int(number), body


SLOT = 512
"""Bytes of one of the two places in the ledger, which are written by turns: whatever happens to
one while it is written, the other is whole. Nothing is allocated for it on a disk that is full."""


def encode_slot(turn: int, ledger: Ledger) -> bytes:
    body = _json.encode(asdict(ledger)).encode()
    return seal(turn, body).removesuffix(b"\n").ljust(SLOT - 1) + b"\n"


def decode_slots(data: bytes) -> tuple[int, Ledger | None]:
    """The last turn and what was written in it; None if there is none that is whole."""
    slots = (data[start : start + SLOT].rstrip() + b"\n" for start in (0, SLOT))
    found = max(filter(None, map(unseal, slots)), default=None)
    if found is None:
        return 0, None
    turn, body = found
    try:
        return turn, Ledger(**json.loads(body))
    except (ValueError, TypeError):
        return turn, None


LEDGER = "ledger"
BUFFER = 64 << 10
_NAME = re.compile(r"([0-9]{16,})\.jsonl")
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND = os.O_WRONLY | os.O_APPEND
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM}
"""Errors that say nothing about what is on the disk."""


class _Files:
    """The directory, held by this process alone. All that is done here may raise OSError.

    Files are named relative to the directory that is held: another may have taken its path.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.segments: list[Segment] = []
        self._turn = 0
        self._held: int | None = None
        self._current: int | None = None
        self._ledger: int | None = None
        self._closed = False

    def load(self) -> tuple[Ledger | None, int]:
        """What the ledger says, and the number after the last line."""
        self.let_go()
        self._hold()
        segments = self._listed()
        stop = 0
        if segments:
            last = segments[-1]
            with self._reader(_name(last.first)) as file:
                stop, last.size = survey(iter(lambda: _piece(file), b""), last.first)
        self._turn, ledger = decode_slots(self._ledger_data())
        self.segments = segments
        return ledger, stop

    def room(self, most: int) -> int:
        """Bytes that the last segment may still grow by."""
        return most - self.segments[-1].size if self.segments else 0

    def end(self) -> Place:
        return Place(self.segments[-1].first, self.segments[-1].size) if self.segments else NOWHERE

    def begin(self, first: int) -> None:
        """Another segment."""
        if self._current is not None:
            os.fdatasync(self._current)
            self._current = _close(self._current)
        self._current = self._open(_name(first), _APPEND | os.O_CREAT | os.O_TRUNC)
        self.segments.append(Segment(first, 0))

    def append(self, lines: bytes) -> None:
        last = self.segments[-1]
        if self._current is None:
            self._current = self._open(_name(last.first), _APPEND)
            # A torn line at its end never was one.
            os.ftruncate(self._current, last.size)
        self._check(self._current)
        _write_all(self._current, lines)
        last.size += len(lines)

    def save(self, ledger: Ledger) -> None:
        if self._ledger is None:
            self._ledger = self._open(LEDGER, os.O_WRONLY | os.O_CREAT)
        self._check(self._ledger)
        self._turn += 1
        data = encode_slot(self._turn, ledger)
        if os.pwrite(self._ledger, data, self._turn % 2 * SLOT) < SLOT:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def lines(self, start: int, stop: int, mark: Place) -> Generator[Line, None, None]:
        """From the first segment that has any of these numbers; from the mark, if it is there."""
        for segment, end in spans(self.segments, stop):
            if end > start:
                offset = mark.offset if mark.segment == segment.first else 0
                yield from self._lines_of(segment.first, offset, end)

    def _lines_of(self, segment: int, offset: int, end: int) -> Iterator[Line]:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(self._reader(_name(segment)))
            except OSError as error:
                _raise_if_passing(error)
                return
            file.seek(offset)
            while piece := _piece(file):
                found = unseal(piece)
                if found is not None and found[0] < end:
                    yield Line(*found, Place(segment, offset))
                offset += len(piece)

    def remove(self, count: int) -> None:
        """The oldest ones."""
        for _ in range(count):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_name(self.segments[0].first), dir_fd=self._here)
            del self.segments[0]

    def sync(self) -> None:
        for descriptor in (self._current, self._ledger, self._held):
            if descriptor is not None:
                os.fsync(descriptor)

    def let_go(self) -> None:
        """Of the files, not of the directory: nobody else may have it in between."""
        self._current, self._ledger = _close(self._current), _close(self._ledger)

    def close(self) -> None:
        self.let_go()
        self._held = _close(self._held)
        self._closed = True

    def _hold(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "it is closed")
        if self._held is not None and self._is_in_place():
            return
        self._held = _close(self._held)
        self._directory.mkdir(0o700, parents=True, exist_ok=True)
        held = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            raise
        self._held = held

    @property
    def _here(self) -> int:
        # None would be the directory that the process runs in.
        assert self._held is not None
        return self._held

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._here), self._directory.stat())
        except FileNotFoundError:
            return False

    def _check(self, descriptor: int) -> None:
        """What is written to a file that was deleted is lost without a word."""
        if not os.fstat(descriptor).st_nlink or not self._is_in_place():
            raise FileNotFoundError(errno.ENOENT, "it was deleted")

    def _listed(self) -> list[Segment]:
        names = os.listdir(self._here)  # noqa: PTH208 - not of a path
        firsts = sorted(int(name[1]) for name in map(_NAME.fullmatch, names) if name)
        return [Segment(first, self._size_of(_name(first))) for first in firsts]

    def _size_of(self, name: str) -> int:
        return os.stat(name, dir_fd=self._here, follow_symlinks=False).st_size

    def _ledger_data(self) -> bytes:
        try:
            with self._reader(LEDGER) as file:
                return file.read(2 * SLOT)
        except FileNotFoundError:
            return b""

    def _reader(self, name: str) -> BinaryIO:
        return os.fdopen(self._open(name, os.O_RDONLY), "rb", buffering=BUFFER)

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | _SAFE, 0o600, dir_fd=self._here)


def _name(segment: int) -> str:
    return f"{segment:016}.jsonl"


def _piece(file: BinaryIO) -> bytes:
    """A line, or what damage made of it. Nothing at the end, and where the disk is damaged."""
    try:
        return file.readline(LONGEST + OVERHEAD)
    except OSError as error:
        _raise_if_passing(error)
        return b""


def _raise_if_passing(error: OSError) -> None:
    if error.errno in _PASSING:
        raise error


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _close(descriptor: int | None) -> int | None:
    # An error at this point is one that writing or syncing has already met.
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return None
