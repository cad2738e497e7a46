"""The log file on a full or read-only disk, and of a writer that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import re
import select
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.fault import log_writer
from tests.fault.log_writer import line, number_of, short_line
from tests.support.sizes import size
from tests.support.waiting import block, block_until

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.logs.rotating_file import EVICTION_INTERVAL, RotatingFile, Rotation
from cogwork.logs.sink import Sink

KILLS = size(ci=10, full=200)
START_DEADLINE = 60.0
END_DEADLINE = 60.0
WHOLE = re.compile(rb"[0-9]+ ([0-9]+) (x*)\.\n")
DISK = 256 << 10
PAGE = 4096
SMALL = Rotation(size=4 * PAGE, total=DISK)
"""Never so much that room is made in any case."""


class KeptLines(NamedTuple):
    """What all files together contain."""

    first: int
    last: int
    torn: int
    size: int


@pytest.mark.timeout(size(ci=240, full=900))
def test_killed_writer_loses_no_written_line(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "robot.log"
    started = time.monotonic()
    last, torn, seen = 0, 0, Counter[str]()
    for _ in range(KILLS):
        acknowledged = kill_writer(path, first=last + 1)
        kept = read_kept_lines(path)
        assert kept.last >= acknowledged, f"line {acknowledged} was written, and is gone"
        assert kept.torn <= torn + 1, "more than the last line is torn"
        seen["lines"] += kept.last - last
        seen["kills in the middle of a line"] += kept.torn > torn
        seen["lines beyond those acknowledged"] += kept.last - max(acknowledged, last)
        last, torn = kept.last, kept.torn
    seen["lines that made room"] = kept.first - 1
    seen["KiB kept"] = kept.size >> 10
    seen["files"] = len(files(path))
    print(f"\n{KILLS} kills in {time.monotonic() - started:.1f} s: {dict(seen)}")
    assert seen["lines"] > 0


def kill_writer(path: Path, first: int) -> int:
    """Return the last number that a writer reported before it was killed, or 0."""
    command = [sys.executable, "-I", log_writer.__file__, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            ready, _, _ = select.select([process.stdout], [], [], START_DEADLINE)
            assert ready, f"the writer did not start within {START_DEADLINE:g} s"
            block(random.choice((0.002, 0.05)) * random.random())  # the moment is the input here
        finally:
            process.kill()
        output, _ = process.communicate(timeout=END_DEADLINE)
    assert process.returncode == -9, "the writer ended by itself"
    return max((int(number) for number in output.split()[1:]), default=0)


def read_kept_lines(path: Path) -> KeptLines:
    """Check that lines have no gap, are torn only at kills, and respect all limits."""
    sizes = [file.stat().st_size for file in files(path)]
    assert sum(sizes) <= log_writer.ROTATION.total
    assert max(sizes, default=0) <= log_writer.ROTATION.size
    found = read_lines(path)
    # A line torn at its line break becomes complete with that of the next, and appears twice.
    whole = [number for number, _ in itertools.groupby(map(number_of, filter(is_whole, found)))]
    if not whole:
        return KeptLines(1, 0, len(found), sum(sizes))
    assert whole == list(range(whole[0], whole[-1] + 1)), "lines are missing in between"
    if whole[0] > 1:
        # A small file that was old, or one at a kill, is removed with the large one before it.
        assert sum(sizes) > log_writer.ROTATION.total - 3 * log_writer.ROTATION.size
    for before, text in itertools.pairwise([line(whole[0] - 1), *found]):
        assert is_whole(text) or is_beginning_after(before, text), (
            f"no line begins with {text[:60]!r}"
        )
    torn = sum(not is_whole(text) for text in found)
    return KeptLines(whole[0], whole[-1], torn, sum(sizes))


def is_whole(text: bytes) -> bool:
    found = WHOLE.fullmatch(text)
    return found is not None and len(found[2]) == int(found[1])


def is_beginning_after(before: bytes, fragment: bytes) -> bool:
    """Return whether it begins the line after a complete one, or repeats a torn one."""
    expected = line(number_of(before) + 1) if is_whole(before) else before
    shared = min(len(expected), len(fragment)) - 1
    return expected[:shared] == fragment[:shared]


def files(path: Path) -> list[Path]:
    """Return the rotated files, oldest first, and the current one."""
    older = sorted(path.parent.glob(f"{path.stem}-*"))
    return [*older, path] if path.exists() else older


def read_lines(path: Path) -> list[bytes]:
    """Return the lines with their line breaks; the last one of a file may lack it."""
    return [text for file in files(path) for text in file.read_bytes().splitlines(keepends=True)]


class Disk(NamedTuple):
    """A small disk that can be filled up."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "robot.log"

    def fill(self) -> None:
        with (self.path / "filler").open("ab", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(PAGE))
            except OSError:
                return

    def free(self) -> None:
        (self.path / "filler").unlink()

    def remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", self.path], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    path = tmp_path / "disk"
    path.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command to make a small disk with")
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "cogwork-test", str(path)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk may not be mounted here: {mounted.stderr.splitlines()[0]}")
    yield Disk(path)
    subprocess.run(["umount", path], check=True)


@pytest.fixture
def faults() -> list[str | None]:
    return []


Opened = Callable[[Path], RotatingFile]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_log(clock: ManualClock, faults: list[str | None]) -> Iterator[Opened]:
    made: list[RotatingFile] = []

    def open_file(path: Path) -> RotatingFile:
        made.append(RotatingFile(path, SMALL, clock, faults.append))
        return made[-1]

    yield open_file
    for file in made:
        file.close()


def test_full_disk_drops_lines_until_space_is_freed(
    disk: Disk, open_log: Opened, clock: ManualClock, faults: list[str | None]
) -> None:
    file, numbers = open_log(disk.log), itertools.count(1)
    full = f'"{disk.log}" cannot be written: No space left on device; free some disk space'
    for number in range(4):
        write_lines(file, numbers, 30)
        older = len(files(disk.log)) - 1
        disk.fill()
        write_lines(file, numbers, 500)
        assert len(files(disk.log)) - 1 >= older - 1, "more than one file gave way at once"
        assert file.fault == full
        disk.free()
        write_lines(file, numbers, 1)
        assert faults == [full, None] * (number + 1)
        asyncio.run(clock.advance(EVICTION_INTERVAL))
    assert check_all_accounted(disk.log) == next(numbers) - 1


def test_oldest_file_is_removed_for_a_line_on_a_full_disk(
    disk: Disk, open_log: Opened, faults: list[str | None]
) -> None:
    file, numbers = open_log(disk.log), itertools.count(1)
    write_lines(file, numbers, 150)
    oldest, second, *_ = files(disk.log)
    disk.fill()
    write_lines(file, numbers, 15)
    assert faults == []
    assert not oldest.exists()
    assert files(disk.log)[0] == second
    assert check_all_accounted(disk.log) == next(numbers) - 1


def test_full_disk_does_not_block_writers(disk: Disk, faults: list[str | None]) -> None:
    file = RotatingFile(disk.log, SMALL, SystemClock(), faults.append)
    file.write(short_line(1))
    disk.fill()
    sink = Sink("log", file.write)
    for number in range(2, 20_001):
        sink.put(short_line(number))
    sink.close(END_DEADLINE)
    assert faults != []
    disk.free()
    file.close()
    assert check_all_accounted(disk.log) == 20_000


def write_lines(file: RotatingFile, numbers: Iterator[int], count: int) -> None:
    """Write one line at a time, as a quiet machine does."""
    for number in itertools.islice(numbers, count):
        file.write(short_line(number))


def check_all_accounted(path: Path) -> int:
    """Check that each line is present or reported as dropped, and return the last number."""
    last: int | None = None
    assert sum(file.stat().st_size for file in files(path)) <= SMALL.total
    for text in read_lines(path):
        if notice := re.match(rb"dropped ([0-9]+) lines? here: ", text):
            last = (last or 0) + int(notice[1])
        elif is_whole(text):
            assert last in (None, number_of(text) - 1)
            last = number_of(text)
    assert last is not None
    return last


def test_read_only_disk_drops_lines_and_recovers(
    disk: Disk, open_log: Opened, faults: list[str | None]
) -> None:
    file = open_log(disk.log)
    disk.remount("ro")
    file.write(short_line(1) + short_line(2))
    disk.remount("rw")
    file.write(short_line(3))
    assert disk.log.read_bytes() == (
        b"dropped 2 lines here: Read-only file system\n" + short_line(3)
    )
    assert faults == [
        f'"{disk.log}" cannot be written: Read-only file system; choose a writable location',
        None,
    ]
    file.close()
    disk.remount("ro")
    file.write(short_line(4))
    file.close()
    disk.remount("rw")
    file.write(short_line(5))
    assert read_lines(disk.log)[-2:] == [
        b"dropped 1 line here: Read-only file system\n",
        short_line(5),
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write in any directory")
def test_unwritable_directory_drops_lines_and_recovers(
    tmp_path: Path, open_log: Opened, faults: list[str | None]
) -> None:
    path = tmp_path / "logs" / "robot.log"
    path.parent.mkdir(mode=0o500)
    file = open_log(path)
    file.write(short_line(1))
    assert faults[0] is not None
    assert "Permission denied; let the user" in faults[0]
    path.parent.chmod(0o700)
    file.write(short_line(2))
    path.parent.chmod(0o500)
    for number in range(3, 103):
        file.write(short_line(number))
    path.parent.chmod(0o700)
    file.write(short_line(103))
    assert faults[1] is None
    assert faults[-1] is None
    assert check_all_accounted(path) == 103


def test_file_moved_under_load_loses_no_line(tmp_path: Path) -> None:
    path, moved = tmp_path / "robot.log", itertools.count()
    with LogLoad(path) as load:
        for _ in range(size(ci=50, full=2000)):
            load.run_when_written(lambda: path.rename(tmp_path / f"moved-{next(moved)}"))
    assert load.told == []
    found = sorted(
        number_of(text)
        for file in tmp_path.iterdir()
        for text in file.read_bytes().splitlines(keepends=True)
        if is_whole(text)
    )
    assert found == list(range(1, load.count + 1))


def test_file_deleted_under_load_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "robot.log"
    with LogLoad(path) as load:
        for _ in range(size(ci=50, full=2000)):
            load.run_when_written(path.unlink)
    assert load.told == []
    assert number_of(read_lines(path)[-1]) == load.count


class LogLoad:
    """A thread that writes lines without a break."""

    def __init__(self, path: Path) -> None:
        self.told: list[str | None] = []
        self.count = 0
        self._path = path
        rotation = Rotation(size=1 << 20, total=1 << 30)
        self._file = RotatingFile(path, rotation, SystemClock(), self.told.append)
        self._places = threading.Semaphore(100)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._put_lines, name="load")

    def __enter__(self) -> LogLoad:
        self._sink = Sink("log", self._write)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._sink.close(END_DEADLINE)
        self._file.close()

    def run_when_written(self, act: Callable[[], object]) -> None:
        """Run the action as soon as the file exists and is not empty."""

        def act_if_written() -> bool:
            # It may be rotated in between.
            with contextlib.suppress(FileNotFoundError):
                if self._path.stat().st_size:
                    act()
                    return True
            return False

        block_until(act_if_written, END_DEADLINE, every=0.0005)

    def _put_lines(self) -> None:
        while not self._ended.is_set():
            self._places.acquire()
            self.count += 1
            self._sink.put(short_line(self.count))

    def _write(self, lines: bytes) -> None:
        self._file.write(lines)
        self._places.release(lines.count(b"\n"))
