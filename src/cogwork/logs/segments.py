"""The files of the spool: segments of lines, and the ledger beside them.

The directory itself is locked, and its files are opened relative to it: whatever is mounted over
its path meanwhile is never touched.
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

from cogwork.logs.account import (
    NOWHERE,
    SLOT,
    Ledger,
    Line,
    Place,
    Segment,
    decode_slots,
    encode_slot,
    spans,
    survey,
)
from cogwork.logs.sealed import LONGEST, OVERHEAD, unseal

LEDGER = "ledger"
BUFFER = 64 << 10
_NAME = re.compile(r"([0-9]{16,})\.jsonl")
_SAFE = os.O_CLOEXEC | os.O_NOFOLLOW
_APPEND = os.O_WRONLY | os.O_APPEND
_PASSING = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EACCES, errno.EPERM}
"""Errors that say nothing about what is on the disk."""


class SegmentFiles:
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
