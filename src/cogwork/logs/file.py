"""A file of lines that is rotated by size and age, and bounded together with its older ones.

The current file is always at its path. One that is full or old is renamed to the moment at which
that happened, `robot-20261115T051132.123Z.log`, and the oldest of those make room for the others.
What was written survives the end of the process, however sudden; it is not forced to the disk.
Whatever goes wrong, lines that cannot be written are left out and counted, and nobody waits.
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

from cogwork.core.atomic import make_directory
from cogwork.core.clock import Clock
from cogwork.logs.entry import moment
from cogwork.logs.sink import missing

LEAST = 4096
"""Bytes that a file may have at least: the line about missing lines must fit."""
GIVE_WAY = 600.0
"""Seconds between two rotated files that are removed because the disk is full. Who filled it may
take that room as well: what the log still knows of how it came to that is not spent at once."""
BEGINNING = 4096
"""Bytes in which the time of the first line is looked for."""

# Reading, for how it begins and ends.
FLAGS = os.O_RDWR | os.O_NOCTTY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
FULL = {errno.ENOSPC, errno.EDQUOT}
TIME = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
ADVICE = {
    errno.ENOSPC: "free some space on that disk",
    errno.EDQUOT: "free some space, or ask for a larger quota",
    errno.EACCES: "let the user that this runs as write the file and its directory",
    errno.EPERM: "let the user that this runs as write the file and its directory",
    errno.EROFS: "choose a place that can be written",
    errno.EISDIR: "name a file",
    errno.EEXIST: "it is not a directory; name another place",
    errno.EIO: "check that disk",
}

OnTrouble = Callable[[str | None], None]
"""Told of every change, with None when all is well again. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Rotation:
    size: int = 10 << 20
    """Bytes of one file. A longer line is left out."""
    age: float = 24 * 3600.0
    """Seconds after which a file is rotated when the next line comes; 0: never."""
    total: int = 100 << 20
    """Bytes of all files together."""

    def __post_init__(self) -> None:
        if not LEAST <= self.size <= self.total:
            raise ValueError(
                f"a file of {self.size} bytes, {self.total} in total: a file needs {LEAST} bytes "
                "or more, and all files together at least as much as one"
            )


class RotatingFile:
    """Its `write` is for the thread of one sink, from which `on_trouble` is called, too."""

    def __init__(
        self, path: Path, rotation: Rotation, clock: Clock, on_trouble: OnTrouble | None = None
    ) -> None:
        # The file a link leads to is the one to rename, and its directory the one to rename it in.
        self._path = Path(os.path.realpath(path))
        self._rotation = rotation
        self._clock = clock
        self._on_trouble = on_trouble
        self.trouble: str | None = None
        """A sentence about what goes wrong at present."""
        self._names = Names(self._path.stem, self._path.suffix)
        self._busy = threading.Lock()
        self._descriptor: int | None = None
        self._identity = (0, 0)
        self._begun = 0.0
        self._torn = False
        """Whether the file ends in the middle of a line."""
        self._missing = 0
        self._why = ""
        self._blocked: OSError | None = None
        """Why the file cannot be rotated, although it should be."""
        self._spared_until = 0.0

    def write(self, lines: bytes) -> None:
        """Whole lines. Blocks as long as the disk does, and raises nothing."""
        with self._busy:
            self._blocked = None
            self._write(lines)

    def rotated(self) -> list[Path]:
        """The older files, the oldest first."""
        try:
            return [self._path.with_name(older.name) for older in self._older()]
        except OSError:
            return []

    def close(self) -> None:
        """Leaves a write that still hangs alone: the end of the process closes its file."""
        if not self._busy.acquire(blocking=False):
            return
        try:
            if self._missing:
                self._write(b"")
            self._let_go()
        finally:
            self._busy.release()

    def _write(self, lines: bytes) -> None:
        start = 0
        while start < len(lines) or self._missing:
            try:
                start = self._write_some(lines, start)
            except OSError as error:
                if self._gave_way(error):
                    continue
                self._let_go()
                self._leave_out(lines.count(b"\n", start), error.strerror or str(error))
                self._tell(sentence(self._path, "written", error))
                return
        blocked = self._blocked
        self._tell(None if blocked is None else sentence(self._path, "rotated", blocked))

    def _write_some(self, lines: bytes, start: int) -> int:
        """Where the rest begins."""
        size = self._opened()
        head = self._head()
        line = end_of_line(lines, start) - start
        if line > self._rotation.size:
            self._leave_out(1, f"longer than a file, which ends at {self._rotation.size} bytes")
            return start + line
        limit = self._rotation.size
        if size and (size + len(head) + line > limit or self._is_old()):
            if self._rotated():
                return start
            limit = self._limit_if_blocked(size + len(head) + line)
        end = fitting(lines, start, limit - size - len(head))
        return start + self._append(head, lines[start:end])

    def _opened(self) -> int:
        """The size of the current file, which is open and at its path from here on."""
        status = self._status()
        if status is None:
            self._let_go()
            return self._open()
        if not status.st_size:
            self._torn, self._begun = False, self._clock.monotonic()
        return status.st_size

    def _status(self) -> os.stat_result | None:
        """None if the open file is not the one at the path: moved, deleted or not open yet."""
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
        self._descriptor = descriptor = os.open(self._path, FLAGS, 0o600)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(self._path))
        self._identity = (status.st_dev, status.st_ino)
        size = status.st_size
        self._torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        begun = time_begun(os.pread(descriptor, BEGINNING, 0), status.st_mtime)
        age = max(0.0, self._clock.time() - begun) if size else 0.0
        self._begun = self._clock.monotonic() - age
        return size

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _head(self) -> bytes:
        """What comes ahead of the next line."""
        line_break = b"\n" if self._torn else b""
        return line_break + (missing(self._missing, self._why) if self._missing else b"")

    def _is_old(self) -> bool:
        return 0 < self._rotation.age <= self._clock.monotonic() - self._begun

    def _append(self, head: bytes, lines: bytes) -> int:
        """How many bytes of the lines are in the file, but for a torn one at their end."""
        assert self._descriptor is not None
        data = head + lines
        written = os.write(self._descriptor, data)
        self._torn = not data.endswith(b"\n", 0, written)
        if written < len(head):
            return 0
        self._missing = 0
        whole = written if written == len(data) else data.rfind(b"\n", 0, written) + 1
        return whole - len(head)

    def _rotated(self) -> bool:
        """Whether the current file is out of the way."""
        older = self._older()
        name = self._names.next(self._clock.time(), older[-1].name if older else None)
        try:
            with contextlib.suppress(FileNotFoundError):
                self._path.rename(self._path.with_name(name))
        except OSError as error:
            self._blocked = error
            return False
        self._blocked = None
        self._let_go()
        return True

    def _limit_if_blocked(self, needed: int) -> int:
        """A file that stays where it is may grow, but only so that it can be kept once it moves."""
        others = sum(older.size for older in self._older())
        size = self._rotation.size
        limit = max(size, self._rotation.total - size - others)
        if self._blocked is not None and needed > limit:
            raise self._blocked
        return limit

    def _make_room(self) -> None:
        for older in surplus(self._older(), self._rotation.total - self._rotation.size):
            self._path.with_name(older.name).unlink(missing_ok=True)

    def _gave_way(self, error: OSError) -> bool:
        """Whether the oldest rotated file made room on a full disk."""
        now = self._clock.monotonic()
        if error.errno not in FULL or now < self._spared_until:
            return False
        with contextlib.suppress(OSError):
            for older in self._older()[:1]:
                self._path.with_name(older.name).unlink()
                self._spared_until = now + GIVE_WAY
                return True
        return False

    def _older(self) -> list[Older]:
        """The rotated files, the oldest first."""
        found = []
        with os.scandir(self._path.parent) as entries:
            for entry in entries:
                if self._names.owns(entry.name) and entry.is_file(follow_symlinks=False):
                    with contextlib.suppress(FileNotFoundError):
                        found.append(Older(entry.name, entry.stat(follow_symlinks=False).st_size))
        return sorted(found)

    def _leave_out(self, count: int, why: str) -> None:
        self._why = self._why if self._missing else why
        self._missing += count

    def _tell(self, trouble: str | None) -> None:
        if trouble == self.trouble:
            return
        self.trouble = trouble
        if self._on_trouble is not None:
            self._on_trouble(trouble)


class Older(NamedTuple):
    """A rotated file. Names sort by time."""

    name: str
    size: int


class Names(NamedTuple):
    """What rotated files are called."""

    stem: str
    suffix: str

    def at(self, seconds: float) -> str:
        return f"{self.stem}-{re.sub('[-:]', '', moment(seconds))}{self.suffix}"

    def owns(self, name: str) -> bool:
        """Whether it is exactly what a rotated file is called."""
        return self._time_in(name) is not None

    def next(self, now: float, newest: str | None) -> str:
        """Behind the newest in any case, also where a clock was set back."""
        last = self._time_in(newest) if newest is not None else None
        return self.at(now if last is None else max(now, last + 0.001))

    def _time_in(self, name: str) -> float | None:
        start, end = f"{self.stem}-", f"Z{self.suffix}"
        if not (name.startswith(start) and name.endswith(end)):
            return None
        seconds = utc(name[len(start) : -len(end)])
        return seconds if seconds is not None and self.at(seconds) == name else None


def surplus(older: Sequence[Older], most: int) -> Sequence[Older]:
    """The first ones, as many as must go so that the rest takes no more than `most`."""
    together = sum(file.size for file in older)
    for count, file in enumerate(older):
        if together <= most:
            return older[:count]
        together -= file.size
    return older


def end_of_line(lines: bytes, start: int) -> int:
    return lines.find(b"\n", start) + 1 or len(lines)


def fitting(lines: bytes, start: int, room: int) -> int:
    """The end of as many whole lines as there is room for."""
    if len(lines) - start <= room:
        return len(lines)
    return max(start, lines.rfind(b"\n", start, start + max(room, 0)) + 1)


def time_begun(beginning: bytes, changed: float) -> float:
    """The first time that its lines tell: it outlives restarts, copies and a touched file.

    Lines without a time leave only the last change: such a file ages while it is not written.
    """
    found = TIME.search(beginning)
    seconds = utc(found[0].decode()) if found else None
    return changed if seconds is None else seconds


def utc(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def sentence(path: Path, done: str, error: OSError) -> str:
    where = f'"{shown(error.filename)}": ' if error.filename not in (None, str(path)) else ""
    why = f"{where}{error.strerror or error}"
    advice = ADVICE.get(error.errno or 0, "lines are left out until it can")
    return f'"{shown(path)}" cannot be {done}: {why}; {advice}'


def shown(path: str | Path) -> str:
    """A name may hold bytes that are no text."""
    return os.fsencode(path).decode(errors="replace")
