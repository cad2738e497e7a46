"""The files of the spool: segments of lines, and the ledger.

The directory is locked, and its files are opened relative to it. Therefore, a file system that is
mounted over the path of the directory is never touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from cogwork.core.files.atomic import make_directory
from cogwork.core.files.complete_write import write_all
from cogwork.logs.record_codec import MAX_ENTRY_BYTES, RECORD_OVERHEAD, decode_record
from cogwork.logs.spool_index import (
    NO_POSITION,
    SLOT_SIZE,
    Ledger,
    LinePosition,
    QueuedLine,
    Segment,
    decode_slots,
    encode_slot,
    scan_segment,
    segment_ranges,
)

LEDGER_FILE = "ledger"
BUFFER_SIZE = 64 << 10
_SEGMENT_NAME = re.compile(r"([0-9]{16,})\.jsonl")
_SAFE_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND_FLAGS = os.O_WRONLY | os.O_APPEND
_TRANSIENT_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM}
"""Errors that do not indicate damage on the disk."""


class SegmentFiles:
    """The locked spool directory and its files. All methods may raise OSError.

    Files are opened relative to the locked directory, because its path may lead elsewhere by now.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.segments: list[Segment] = []
        self._turn = 0
        self._directory_fd: int | None = None
        self._segment_fd: int | None = None
        self._ledger_fd: int | None = None
        self._closed = False

    def load(self) -> tuple[Ledger | None, int]:
        """Load the files. Return the ledger, and the number after the last line."""
        self.close_files()
        self._lock_directory()
        segments = self._list_segments()
        stop = 0
        if segments:
            last = segments[-1]
            with self._open_reader(_segment_name(last.first)) as file:
                stop, last.size = scan_segment(iter(lambda: _read_piece(file), b""), last.first)
        self._turn, ledger = decode_slots(self._read_ledger())
        self.segments = segments
        return ledger, stop

    def remaining_bytes(self, segment_bytes: int) -> int:
        """Return the number of bytes that still fit into the last segment."""
        return segment_bytes - self.segments[-1].size if self.segments else 0

    def end_position(self) -> LinePosition:
        return (
            LinePosition(self.segments[-1].first, self.segments[-1].size)
            if self.segments
            else NO_POSITION
        )

    def begin_segment(self, first: int) -> None:
        """Sync the current segment, and start a new one."""
        if self._segment_fd is not None:
            os.fdatasync(self._segment_fd)
            self._segment_fd = _close(self._segment_fd)
        self._segment_fd = self._open(_segment_name(first), _APPEND_FLAGS | os.O_CREAT | os.O_TRUNC)
        self.segments.append(Segment(first, 0))

    def append(self, lines: bytes) -> None:
        last = self.segments[-1]
        if self._segment_fd is None:
            self._segment_fd = self._open(_segment_name(last.first), _APPEND_FLAGS)
            # Remove an incomplete line at the end, which was never counted.
            os.ftruncate(self._segment_fd, last.size)
        self._check_not_deleted(self._segment_fd)
        write_all(self._segment_fd, lines)
        last.size += len(lines)

    def save_ledger(self, ledger: Ledger) -> None:
        if self._ledger_fd is None:
            self._ledger_fd = self._open(LEDGER_FILE, os.O_WRONLY | os.O_CREAT)
        self._check_not_deleted(self._ledger_fd)
        self._turn += 1
        data = encode_slot(self._turn, ledger)
        if os.pwrite(self._ledger_fd, data, self._turn % 2 * SLOT_SIZE) < SLOT_SIZE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def read_lines(
        self, start: int, stop: int, mark: LinePosition
    ) -> Generator[QueuedLine, None, None]:
        """Yield the lines of all segments that end after `start`. In the segment that contains
        `mark`, begin at `mark`."""
        for segment, end in segment_ranges(self.segments, stop):
            if end > start:
                offset = mark.offset if mark.segment == segment.first else 0
                yield from self._read_segment(segment.first, offset, end)

    def _read_segment(self, segment: int, offset: int, end: int) -> Iterator[QueuedLine]:
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(self._open_reader(_segment_name(segment)))
            except OSError as error:
                _raise_if_transient(error)
                return
            file.seek(offset)
            while piece := _read_piece(file):
                found = decode_record(piece)
                if found is not None and found[0] < end:
                    yield QueuedLine(*found, LinePosition(segment, offset))
                offset += len(piece)

    def remove_oldest(self, count: int) -> None:
        """Delete the oldest segments."""
        for _ in range(count):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(_segment_name(self.segments[0].first), dir_fd=self._locked_fd)
            del self.segments[0]

    def sync(self) -> None:
        for descriptor in (self._segment_fd, self._ledger_fd, self._directory_fd):
            if descriptor is not None:
                os.fsync(descriptor)

    def close_files(self) -> None:
        """Close the files, but keep the directory locked."""
        self._segment_fd, self._ledger_fd = _close(self._segment_fd), _close(self._ledger_fd)

    def close(self) -> None:
        self.close_files()
        self._directory_fd = _close(self._directory_fd)
        self._closed = True

    def _lock_directory(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the spool is closed")
        if self._directory_fd is not None and self._is_in_place():
            return
        self._directory_fd = _close(self._directory_fd)
        make_directory(self._directory)
        descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        self._directory_fd = descriptor

    @property
    def _locked_fd(self) -> int:
        # None as `dir_fd` would mean the working directory.
        assert self._directory_fd is not None
        return self._directory_fd

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._locked_fd), self._directory.stat())
        except FileNotFoundError:
            return False

    def _check_not_deleted(self, descriptor: int) -> None:
        """Raise FileNotFoundError if the file was deleted: writes to it would be lost silently."""
        if not os.fstat(descriptor).st_nlink or not self._is_in_place():
            raise FileNotFoundError(errno.ENOENT, "the file was deleted")

    def _list_segments(self) -> list[Segment]:
        names = os.listdir(self._locked_fd)  # noqa: PTH208 - a descriptor, not a path
        firsts = sorted(int(name[1]) for name in map(_SEGMENT_NAME.fullmatch, names) if name)
        return [Segment(first, self._size_of(_segment_name(first))) for first in firsts]

    def _size_of(self, name: str) -> int:
        return os.stat(name, dir_fd=self._locked_fd, follow_symlinks=False).st_size

    def _read_ledger(self) -> bytes:
        try:
            with self._open_reader(LEDGER_FILE) as file:
                return file.read(2 * SLOT_SIZE)
        except FileNotFoundError:
            return b""

    def _open_reader(self, name: str) -> BinaryIO:
        return os.fdopen(self._open(name, os.O_RDONLY), "rb", buffering=BUFFER_SIZE)

    def _open(self, name: str, flags: int) -> int:
        return os.open(name, flags | _SAFE_FLAGS, 0o600, dir_fd=self._locked_fd)


def _segment_name(segment: int) -> str:
    return f"{segment:016}.jsonl"


def _read_piece(file: BinaryIO) -> bytes:
    """Return a line, which may be damaged; empty at the end of the file or after a disk error."""
    try:
        return file.readline(MAX_ENTRY_BYTES + RECORD_OVERHEAD)
    except OSError as error:
        _raise_if_transient(error)
        return b""


def _raise_if_transient(error: OSError) -> None:
    if error.errno in _TRANSIENT_ERRORS:
        raise error


def _close(descriptor: int | None) -> int | None:
    # Errors are ignored: writing or syncing has already reported them.
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    return None
