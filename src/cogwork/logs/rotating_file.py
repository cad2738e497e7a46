"""A log file that is rotated by size and age, with a limit on the total size.

The current file is always at its path. A full or old file is renamed with a timestamp, such as
`robot-20261115T051132.123Z.log`. The oldest rotated files are deleted to stay within the limit.
Written lines survive a crash of the process, but they are not synced to the disk. Lines that cannot
be written are dropped and counted. Errors never block the caller.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cogwork.core.clock import Clock
from cogwork.core.files.atomic import make_directory
from cogwork.core.os_error_text import os_reason
from cogwork.logs.entry import format_timestamp
from cogwork.logs.sink import format_missing_notice

MIN_FILE_SIZE = 4096
"""Minimum file size in bytes: the notice about dropped lines must fit."""
EVICTION_INTERVAL = 600.0
"""Minimum seconds between two deletions of rotated files because the disk is full. If another
program fills the disk, it also fills the freed space. Without this interval, the log that explains
the cause would be deleted at once."""
HEAD_SIZE = 4096
"""Maximum bytes at the start of a file that are searched for the first timestamp."""

# Opened for reading as well, to inspect the start and the end of the file.
OPEN_FLAGS = os.O_RDWR | os.O_NOCTTY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT}
TIMESTAMP = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
ADVICE = {
    errno.ENOSPC: "free some disk space",
    errno.EDQUOT: "free some space, or request a larger quota",
    errno.EACCES: "give the server's user write access to the file and its directory",
    errno.EPERM: "give the server's user write access to the file and its directory",
    errno.EROFS: "choose a writable location",
    errno.EISDIR: "specify a file",
    errno.EEXIST: "not a directory; choose another location",
    errno.EIO: "check the disk",
}

OnFault = Callable[[str | None], None]
"""A function that is called with the reason when writing starts to fail, and with None when it
works again. It must not raise an error."""


@dataclass(frozen=True, slots=True)
class Rotation:
    size: int = 10 << 20
    """Maximum size of one file in bytes. A longer line is dropped."""
    age: float = 24 * 3600.0
    """Seconds after which the next line rotates the file; 0 disables rotation by age."""
    total: int = 100 << 20
    """Maximum size of all files together, in bytes."""

    def __post_init__(self) -> None:
        if not MIN_FILE_SIZE <= self.size <= self.total:
            raise ValueError(
                f"invalid rotation of {self.size} bytes per file, {self.total} in total: a file "
                f"needs at least {MIN_FILE_SIZE} bytes, and the total must be at least one file"
            )


class RotatingFile:
    """A rotating log file. Only the thread of one sink may call `write`; it also calls
    `on_fault`."""

    def __init__(
        self, path: Path, rotation: Rotation, clock: Clock, on_fault: OnFault | None = None
    ) -> None:
        # Resolve links, so that the target file is rotated in its own directory.
        self._path = Path(os.path.realpath(path))
        self._rotation = rotation
        self._clock = clock
        self._on_fault = on_fault
        self.fault: str | None = None
        """Description of the current problem; None if there is none."""
        self._names = RotatedNames(self._path.stem, self._path.suffix)
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._identity = (0, 0)
        self._started_at = 0.0
        self._torn = False
        """Whether the file ends in the middle of a line."""
        self._missing_count = 0
        self._missing_reason = ""
        self._rotation_error: OSError | None = None
        """The error that prevents a due rotation; None if there is none."""
        self._next_eviction = 0.0

    def write(self, lines: bytes) -> None:
        """Write whole lines. Block while the disk blocks; never raise an error."""
        with self._lock:
            self._rotation_error = None
            self._write(lines)

    def list_rotated(self) -> list[Path]:
        """Return the rotated files, oldest first."""
        try:
            return [self._path.with_name(older.name) for older in self._scan_rotated()]
        except OSError:
            return []

    def close(self) -> None:
        """Close the file. If a write still blocks, leave the file to be closed by the exit of the
        process."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._missing_count:
                self._write(b"")
            self._close_descriptor()
        finally:
            self._lock.release()

    def _write(self, lines: bytes) -> None:
        start = 0
        while start < len(lines) or self._missing_count:
            try:
                start = self._write_some(lines, start)
            except OSError as error:
                if self._evict_oldest(error):
                    continue
                self._close_descriptor()
                self._count_missing(lines.count(b"\n", start), os_reason(error))
                self._report(describe_error(self._path, "written", error))
                return
        blocked = self._rotation_error
        self._report(None if blocked is None else describe_error(self._path, "rotated", blocked))

    def _write_some(self, lines: bytes, start: int) -> int:
        """Write as many lines as fit. Return the start of the remaining lines."""
        size = self._ensure_open()
        head = self._leading_bytes()
        line = find_line_end(lines, start) - start
        if line > self._rotation.size:
            self._count_missing(
                1, f"longer than the maximum file size, {self._rotation.size} bytes"
            )
            return start + line
        limit = self._rotation.size
        if size and (size + len(head) + line > limit or self._is_old()):
            if self._rotate():
                return start
            limit = self._limit_if_blocked(size + len(head) + line)
        end = find_fitting_end(lines, start, limit - size - len(head))
        return start + self._append(head, lines[start:end])

    def _ensure_open(self) -> int:
        """Open the file at the path if necessary, and return its size."""
        status = self._stat_current()
        if status is None:
            self._close_descriptor()
            return self._open()
        if not status.st_size:
            self._torn, self._started_at = False, self._clock.monotonic()
        return status.st_size

    def _stat_current(self) -> os.stat_result | None:
        """Return the status of the open file; None if it was moved, deleted or never opened."""
        if self._descriptor is None:
            return None
        with contextlib.suppress(OSError):
            status = self._path.lstat()
            if (status.st_dev, status.st_ino) == self._identity:
                return status
        return None

    def _open(self) -> int:
        make_directory(self._path.parent)
        self._make_room()
        self._descriptor = descriptor = os.open(self._path, OPEN_FLAGS, 0o600)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(self._path))
        self._identity = (status.st_dev, status.st_ino)
        size = status.st_size
        self._torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        begun = find_start_time(os.pread(descriptor, HEAD_SIZE, 0), status.st_mtime)
        age = max(0.0, self._clock.time() - begun) if size else 0.0
        self._started_at = self._clock.monotonic() - age
        return size

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _leading_bytes(self) -> bytes:
        """Return the bytes to write before the next line."""
        line_break = b"\n" if self._torn else b""
        return line_break + (
            format_missing_notice(self._missing_count, self._missing_reason)
            if self._missing_count
            else b""
        )

    def _is_old(self) -> bool:
        return 0 < self._rotation.age <= self._clock.monotonic() - self._started_at

    def _append(self, head: bytes, lines: bytes) -> int:
        """Append the data. Return how many bytes of `lines` were written as whole lines."""
        assert self._descriptor is not None
        data = head + lines
        written = os.write(self._descriptor, data)
        self._torn = not data.endswith(b"\n", 0, written)
        if written < len(head):
            return 0
        self._missing_count = 0
        whole = written if written == len(data) else data.rfind(b"\n", 0, written) + 1
        return whole - len(head)

    def _rotate(self) -> bool:
        """Rename the current file. Return whether that succeeded."""
        older = self._scan_rotated()
        name = self._names.next_name(self._clock.time(), older[-1].name if older else None)
        try:
            with contextlib.suppress(FileNotFoundError):
                self._path.rename(self._path.with_name(name))
        except OSError as error:
            self._rotation_error = error
            return False
        self._rotation_error = None
        self._close_descriptor()
        return True

    def _limit_if_blocked(self, needed: int) -> int:
        """Return the size limit of the current file, which may exceed the rotation size.

        If rotation is blocked and the file needs more, raise the error that blocks it.
        """
        others = sum(older.size for older in self._scan_rotated())
        size = self._rotation.size
        limit = max(size, self._rotation.total - size - others)
        if self._rotation_error is not None and needed > limit:
            raise self._rotation_error
        return limit

    def _make_room(self) -> None:
        for older in find_surplus(self._scan_rotated(), self._rotation.total - self._rotation.size):
            self._path.with_name(older.name).unlink(missing_ok=True)

    def _evict_oldest(self, error: OSError) -> bool:
        """Delete the oldest rotated file if the disk is full. Return whether that succeeded."""
        now = self._clock.monotonic()
        if error.errno not in DISK_FULL_ERRORS or now < self._next_eviction:
            return False
        with contextlib.suppress(OSError):
            for older in self._scan_rotated()[:1]:
                self._path.with_name(older.name).unlink()
                self._next_eviction = now + EVICTION_INTERVAL
                return True
        return False

    def _scan_rotated(self) -> list[OlderFile]:
        """Return the rotated files, oldest first."""
        found = []
        with os.scandir(self._path.parent) as entries:
            for entry in entries:
                if self._names.matches(entry.name) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        found.append(
                            OlderFile(entry.name, entry.stat(follow_symlinks=False).st_size)
                        )
        return sorted(found)

    def _count_missing(self, count: int, why: str) -> None:
        self._missing_reason = self._missing_reason if self._missing_count else why
        self._missing_count += count

    def _report(self, fault: str | None) -> None:
        if fault == self.fault:
            return
        self.fault = fault
        if self._on_fault is not None:
            self._on_fault(fault)


class OlderFile(NamedTuple):
    """A rotated file. The names sort by time."""

    name: str
    size: int


class RotatedNames(NamedTuple):
    """The naming scheme of rotated files."""

    stem: str
    suffix: str

    def name_at(self, seconds: float) -> str:
        return f"{self.stem}-{re.sub('[-:]', '', format_timestamp(seconds))}{self.suffix}"

    def matches(self, name: str) -> bool:
        """Return whether the name has exactly the form of a rotated file."""
        return self._parse_time(name) is not None

    def next_name(self, now: float, newest: str | None) -> str:
        """Return a name that sorts after the newest one, even if the clock was set back."""
        last = self._parse_time(newest) if newest is not None else None
        return self.name_at(now if last is None else max(now, last + 0.001))

    def _parse_time(self, name: str) -> float | None:
        start, end = f"{self.stem}-", f"Z{self.suffix}"
        if not (name.startswith(start) and name.endswith(end)):
            return None
        seconds = parse_utc(name[len(start) : -len(end)])
        return seconds if seconds is not None and self.name_at(seconds) == name else None


def find_surplus(older: Sequence[OlderFile], limit: int) -> Sequence[OlderFile]:
    """Return the oldest files that must be deleted so that the rest fits into `limit` bytes."""
    total = sum(file.size for file in older)
    for count, file in enumerate(older):
        if total <= limit:
            return older[:count]
        total -= file.size
    return older


def find_line_end(lines: bytes, start: int) -> int:
    return lines.find(b"\n", start) + 1 or len(lines)


def find_fitting_end(lines: bytes, start: int, room: int) -> int:
    """Return the offset after the last whole line that fits into `room` bytes."""
    if len(lines) - start <= room:
        return len(lines)
    return max(start, lines.rfind(b"\n", start, start + max(room, 0)) + 1)


def find_start_time(beginning: bytes, changed: float) -> float:
    """Return the first timestamp in the file, which survives restarts, copies and `touch`.

    If there is none, return the modification time. Every write changes that time, so such a file
    ages only between writes.
    """
    found = TIMESTAMP.search(beginning)
    seconds = parse_utc(found[0].decode()) if found else None
    return changed if seconds is None else seconds


def parse_utc(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def describe_error(path: Path, action: str, error: OSError) -> str:
    """Return an error message for `action`: "written" or "rotated"."""
    where = f'"{display_path(error.filename)}": ' if error.filename not in (None, str(path)) else ""
    why = f"{where}{os_reason(error)}"
    advice = ADVICE.get(error.errno or 0, "dropping lines until it can")
    return f'"{display_path(path)}" cannot be {action}: {why}; {advice}'


def display_path(path: str | Path) -> str:
    """Return the path as text. File names may contain bytes that are not UTF-8."""
    return os.fsencode(path).decode(errors="replace")
