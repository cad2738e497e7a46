"""The rotating log file: rotation, file names, limits and write errors."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.sizes import limit

from cogwork.core.clock import ManualClock
from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.rotating_file import (
    EVICTION_INTERVAL,
    MIN_FILE_SIZE,
    OlderFile,
    RotatedNames,
    RotatingFile,
    Rotation,
    describe_error,
    find_fitting_end,
    find_line_end,
    find_start_time,
    find_surplus,
)

DEADLINE = 30.0
NOW = 1_794_719_492.123
"""2026-11-15T05:11:32.123Z"""
HOUR = 3600.0
DAY = 24 * HOUR
FILE_SIZE = 8192
SMALL_ROTATION = Rotation(size=FILE_SIZE, total=4 * FILE_SIZE)
LINE = b"x" * 1023 + b"\n"
"""Eight lines fill a file."""


class Log:
    """A rotating file, the faults it has reported, and its files on the disk."""

    def __init__(self, path: Path, rotation: Rotation = SMALL_ROTATION, start: float = NOW) -> None:
        self.path = path
        self.rotation = rotation
        self.clock = ManualClock(start)
        self.reported: list[str | None] = []
        self.open()

    def open(self) -> None:
        self.file = RotatingFile(self.path, self.rotation, self.clock, self.reported.append)

    def restart(self) -> None:
        self.file.close()
        self.open()

    def write(self, *lines: bytes) -> None:
        self.file.write(b"".join(lines))

    def fill(self, files: int) -> None:
        """Rotate that many times and write one line to the current file."""
        for _ in range(files):
            self.write(*[LINE] * 8)
        self.write(b"last\n")

    def fault(self) -> str | None:
        return self.file.fault

    @property
    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.parent.iterdir())

    @property
    def rotated_files(self) -> list[Path]:
        """The rotated files, in a directory that contains nothing else."""
        return [self.path.with_name(name) for name in self.names if name != self.path.name]

    @property
    def files(self) -> list[Path]:
        return [*self.rotated_files, *([self.path] if self.path.exists() else [])]

    @property
    def content(self) -> bytes:
        return b"".join(file.read_bytes() for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.stat().st_size for file in self.files)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "logs" / "robot.log")
    log.path.parent.mkdir()
    yield log
    log.file.close()


@contextmanager
def failing_write(
    monkeypatch: pytest.MonkeyPatch, number: int, while_true: Callable[[], bool] = lambda: True
) -> Iterator[None]:
    """Make every write fail while the condition holds."""
    write = os.write

    def fail(descriptor: int, data: bytes) -> int:
        if while_true():
            raise OSError(number, os.strerror(number))
        return write(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        yield


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def numbered_lines(start: int, stop: int, length: int = 64) -> bytes:
    return b"".join(b"%0*d\n" % (length - 1, number) for number in range(start, stop))


def test_log_file_is_readable_only_by_the_owner(log: Log) -> None:
    log.write(b"one\n", "zwei: ü 機械 🤖\n".encode())
    log.write(b"three\n")
    assert log.path.read_text() == "one\nzwei: ü 機械 🤖\nthree\n"
    assert mode_of(log.path) == 0o600
    assert log.names == ["robot.log"]
    assert log.fault() is None
    assert log.reported == []


def test_missing_directories_are_created_private(tmp_path: Path) -> None:
    log = Log(tmp_path / "a" / "b" / "robot.log")
    log.write(b"one\n")
    log.file.close()
    assert log.content == b"one\n"
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_nothing_is_created_before_the_first_line(tmp_path: Path) -> None:
    Log(tmp_path / "a" / "robot.log").file.close()
    assert list(tmp_path.iterdir()) == []


def test_full_file_is_rotated(log: Log) -> None:
    log.write(*[LINE] * 8)
    assert log.names == ["robot.log"]
    log.write(b"next\n")
    assert log.names == ["robot-20261115T051132.123Z.log", "robot.log"]
    assert log.rotated_files[0].read_bytes() == LINE * 8
    assert log.path.read_bytes() == b"next\n"
    assert mode_of(log.path) == mode_of(log.rotated_files[0]) == 0o600


def test_batch_larger_than_a_file_is_split_between_lines(log: Log) -> None:
    lines = numbered_lines(0, 300, length=100)
    log.write(lines)
    assert [file.stat().st_size for file in log.files] == [8100, 8100, 8100, 5700]
    assert log.content == lines


def test_list_rotated_returns_the_oldest_first(log: Log) -> None:
    assert log.file.list_rotated() == []
    log.fill(3)
    assert log.file.list_rotated() == log.rotated_files != []
    assert Log(log.path.parent / "missing" / "robot.log").file.list_rotated() == []


def test_rotations_at_the_same_time_have_distinct_names(log: Log) -> None:
    log.write(numbered_lines(0, 450))
    assert log.names == [
        "robot-20261115T051132.123Z.log",
        "robot-20261115T051132.124Z.log",
        "robot-20261115T051132.125Z.log",
        "robot.log",
    ]
    assert log.content == numbered_lines(0, 450)


async def test_names_stay_ascending_when_the_clock_is_set_back(log: Log) -> None:
    log.fill(1)
    log.file.close()
    earlier = Log(log.path, start=NOW - DAY)
    earlier.fill(1)
    earlier.file.close()
    assert log.rotated_files[-1].name == "robot-20261115T051132.124Z.log"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("robot.log", "robot-20261115T051132.123Z.log"),
        ("robot", "robot-20261115T051132.123Z"),
        (".robot", ".robot-20261115T051132.123Z"),
        ("a.b.log", "a.b-20261115T051132.123Z.log"),
        ("[*] ü.log", "[*] ü-20261115T051132.123Z.log"),
    ],
)
def test_rotated_file_name_contains_the_time(path: str, name: str) -> None:
    names = RotatedNames(Path(path).stem, Path(path).suffix)
    assert names.name_at(NOW) == name
    assert names.matches(name)


@pytest.mark.parametrize(
    "name",
    [
        "robot.log",
        "robot-.log",
        "robot-old.log",
        "robot-Z.log",
        "robot-20261115T051132.123Z.log.gz",
        "robot-20261115T051132.123Z",
        "robot-20261115T051132.123.log",
        "robot-20261115T051132.123z.log",
        "robot-20261115T051132.12Z.log",
        "robot-20261115T051132.123456Z.log",
        "robot-20261115T051132Z.log",
        "robot-2026-11-15T05:11:32.123Z.log",
        "robot-20261115 051132.123Z.log",
        "robot-20261315T051132.123Z.log",
        "robot-20261115T251132.123Z.log",
        "robot-20261115T051132.123+00:00Z.log",
        "robot-٢٠٢٦1115T051132.123Z.log",
        "robot-2-20261115T051132.123Z.log",
        "xrobot-20261115T051132.123Z.log",
        "robot-20261115T051132.123Z\n.log",
        "robot-\udcff.log",
        "Robot-20261115T051132.123Z.log",
    ],
)
def test_foreign_names_do_not_match(name: str) -> None:
    assert not RotatedNames("robot", ".log").matches(name)


@given(
    moments=st.lists(st.floats(0, 4e9), min_size=1, max_size=20),
    stem=st.text("ab-.Z0", min_size=1),
    suffix=st.sampled_from(["", ".log", ".0Z"]),
)
def test_names_are_unique_and_sorted_by_creation(
    moments: list[float], stem: str, suffix: str
) -> None:
    names, made = RotatedNames(stem, suffix), list[str]()
    for now in moments:
        made.append(names.next_name(now, made[-1] if made else None))
    assert made == sorted(set(made))
    assert all(names.matches(name) for name in made)


def test_oldest_files_are_removed_over_the_total_size(log: Log) -> None:
    for number in range(0, 2000, 10):
        log.write(numbered_lines(number, number + 10))
        assert log.size <= SMALL_ROTATION.total
    kept = log.content
    assert numbered_lines(0, 2000).endswith(kept)
    assert len(kept) > SMALL_ROTATION.total - 2 * FILE_SIZE


def test_files_of_earlier_runs_count_toward_the_total_size(log: Log) -> None:
    for hour in range(6):
        name = RotatedNames("robot", ".log").name_at(NOW - hour * HOUR)
        log.path.with_name(name).write_bytes(LINE * 6)
    log.write(b"one\n")
    assert [file.name for file in log.rotated_files] == [
        RotatedNames("robot", ".log").name_at(NOW - hour * HOUR) for hour in (3, 2, 1, 0)
    ]
    assert log.size <= SMALL_ROTATION.total


def test_foreign_files_are_never_touched(log: Log) -> None:
    directory = log.path.parent
    foreign = {
        name: os.urandom(3 * FILE_SIZE)
        for name in (
            "robot.log.1",
            "robot-20261115T051132.log",
            "robot-20251115T051132.123Z.log.gz",
            "robot-story-20251115T051132.123Z.log",
            "other-20251115T051132.123Z.log",
            "robot-notes.log",
        )
    }
    for name, content in foreign.items():
        (directory / name).write_bytes(content)
    elsewhere = directory.parent / "elsewhere"
    elsewhere.write_bytes(LINE * 100)
    (directory / "robot-20251115T051132.123Z.log").symlink_to(elsewhere)
    (directory / "robot-20251115T051132.124Z.log").mkdir()
    log.write(numbered_lines(0, 2000))
    for name, content in foreign.items():
        assert (directory / name).read_bytes() == content
    assert elsewhere.read_bytes() == LINE * 100
    assert (directory / "robot-20251115T051132.123Z.log").is_symlink()
    assert (directory / "robot-20251115T051132.124Z.log").is_dir()


def test_two_logs_in_one_directory_do_not_interfere(tmp_path: Path) -> None:
    robot, activity = Log(tmp_path / "robot.log"), Log(tmp_path / "robot-story.log")
    robot.write(numbered_lines(0, 300))
    activity.write(numbered_lines(0, 1000))
    robot.file.close()
    activity.file.close()
    assert b"".join(
        path.read_bytes() for path in sorted(tmp_path.glob("robot-2*"))
    ) == numbered_lines(0, 256)


@given(sizes=st.lists(st.integers(0, 100)), most=st.integers(0, 1000))
def test_find_surplus_removes_only_what_is_necessary(sizes: list[int], most: int) -> None:
    rotated_files = [OlderFile(str(number), size) for number, size in enumerate(sizes)]
    removed = find_surplus(rotated_files, most)
    assert list(removed) == rotated_files[: len(removed)]
    assert sum(file.size for file in rotated_files[len(removed) :]) <= most
    if removed:
        assert sum(file.size for file in rotated_files[len(removed) - 1 :]) > most


@given(lengths=st.lists(st.integers(1, 30)), start=st.integers(0, 30), room=st.integers(-10, 1000))
def test_find_fitting_end_returns_the_end_of_a_whole_line(
    lengths: list[int], start: int, room: int
) -> None:
    parts = [b"x" * (length - 1) + b"\n" for length in lengths]
    lines = b"".join(parts)
    begin = len(b"".join(parts[:start]))
    end = find_fitting_end(lines, begin, room)
    assert end - begin <= max(0, room)
    assert end in itertools.accumulate(map(len, parts), initial=0)
    if end < len(lines):
        assert find_line_end(lines, end) - begin > room


@given(
    batches=st.lists(st.lists(st.integers(1, 3000), min_size=1, max_size=30), max_size=20),
    files=st.integers(1, 4),
    restarts=st.sets(st.integers(0, 20)),
)
def test_newest_lines_are_kept_in_order_within_the_total_size(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[list[int]],
    files: int,
    restarts: set[int],
) -> None:
    log = Log(
        tmp_path_factory.mktemp("any") / "robot.log",
        Rotation(size=MIN_FILE_SIZE, total=files * MIN_FILE_SIZE),
    )
    written = b""
    for number, lengths in enumerate(batches):
        batch = b"".join(bytes([97 + number]) * (length - 1) + b"\n" for length in lengths)
        log.write(batch)
        written += batch
        assert log.size <= files * MIN_FILE_SIZE
        assert all(file.stat().st_size <= MIN_FILE_SIZE for file in log.files)
        if number in restarts:
            log.restart()
    log.file.close()
    assert written.endswith(log.content)
    assert log.content or not written
    if len(log.content) < len(written):
        assert len(log.content) > (files - 2) * MIN_FILE_SIZE, "more was removed than had to be"


async def test_old_file_is_rotated_with_the_next_line(log: Log) -> None:
    log.write(b"one\n")
    await log.clock.advance(DAY - 1)
    log.write(b"two\n")
    await log.clock.advance(1)
    assert log.names == ["robot.log"]
    log.write(b"three\n")
    assert log.names == ["robot-20261116T051132.123Z.log", "robot.log"]
    assert log.path.read_bytes() == b"three\n"


async def test_age_counts_from_the_first_line(log: Log) -> None:
    log.path.touch()
    log.write(b"one\n")
    log.path.write_bytes(b"")
    await log.clock.advance(DAY - 1)
    log.write(b"two\n")
    await log.clock.advance(DAY - 1)
    log.write(b"three\n")
    assert log.names == ["robot.log"]


async def test_age_zero_disables_rotation_by_age(tmp_path: Path) -> None:
    log = Log(tmp_path / "robot.log", Rotation(age=0))
    log.write(b"one\n")
    await log.clock.advance(1000 * DAY)
    log.write(b"two\n")
    log.restart()
    log.write(b"three\n")
    log.file.close()
    assert log.path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("format_entry", [as_text, as_json])
async def test_file_age_survives_restarts(log: Log, format_entry: Callable[[Entry], str]) -> None:
    for _ in range(24):
        entry = Entry(log.clock.time(), 20, "robot", "main.py:1", "since 2020-01-01T00:00:00Z")
        log.write(format_entry(entry).encode(), b"\n")
        # The modification time uses the system clock, not the manual clock.
        os.utime(log.path, (log.clock.time(), log.clock.time()))
        await log.clock.advance(HOUR)
        log.restart()
        assert log.names == ["robot.log"]
    log.write(b"tomorrow\n")
    assert log.names == ["robot-20261116T051132.123Z.log", "robot.log"]
    assert log.path.read_bytes() == b"tomorrow\n"


@pytest.mark.parametrize(("age", "rotated"), [(DAY - 1, False), (DAY, True)])
def test_file_without_times_is_as_old_as_its_modification_time(
    log: Log, age: float, rotated: bool
) -> None:
    log.path.write_bytes(b"no time\n")
    os.utime(log.path, (NOW - age, NOW - age))
    log.write(b"one\n")
    assert (len(log.names) == 2) is rotated


@pytest.mark.parametrize(
    ("beginning", "seconds"),
    [
        (b"2026-11-15T05:11:32.123Z\tINFO\t", NOW - 0.123),
        (b'{"time": "2026-11-15T05:11:32.123Z"}\n{"time": "2020-', NOW - 0.123),
        (b"dropped 3 lines here: no\n2026-11-15T05:11:32Z", NOW - 0.123),
        (b"2026-99-99T05:11:32.123Z\tINFO\t", 7.0),
        (b"", 7.0),
        (b"\xff\x00", 7.0),
    ],
)
def test_find_start_time_reads_the_first_time(beginning: bytes, seconds: float) -> None:
    assert find_start_time(beginning, changed=7.0) == pytest.approx(seconds)


async def test_file_with_a_future_start_time_counts_as_new(log: Log) -> None:
    log.path.write_bytes(b"2027-11-15T05:11:32.123Z\n")
    log.write(b"one\n")
    await log.clock.advance(DAY - 1)
    log.write(b"two\n")
    assert log.names == ["robot.log"]


def test_restart_appends_to_the_file(log: Log) -> None:
    for number in range(100):
        log.write(numbered_lines(number, number + 1))
        log.restart()
    assert log.names == ["robot.log"]
    assert log.content == numbered_lines(0, 100)


def test_too_large_file_is_rotated_at_the_start(log: Log) -> None:
    log.path.write_bytes(LINE * 9)
    log.write(b"one\n")
    assert log.rotated_files[0].read_bytes() == LINE * 9
    assert log.path.read_bytes() == b"one\n"


def test_file_larger_than_the_total_size_is_removed(log: Log) -> None:
    log.path.write_bytes(LINE * 100)
    log.write(b"one\n")
    assert log.content == b"one\n"
    assert log.names == ["robot.log"]


@pytest.mark.parametrize("tail", [b"torn", b"whole\ntorn", "ü".encode()[:1], b"x" * 10])
def test_torn_line_is_terminated_at_the_start(log: Log, tail: bytes) -> None:
    log.path.write_bytes(tail)
    log.write(b"one\n")
    log.write(b"two\n")
    assert log.path.read_bytes() == tail + b"\none\ntwo\n"


def test_torn_line_in_a_full_file_is_unchanged(log: Log) -> None:
    log.path.write_bytes(b"x" * FILE_SIZE)
    log.write(b"one\n")
    assert log.rotated_files[0].read_bytes() == b"x" * FILE_SIZE
    assert log.path.read_bytes() == b"one\n"


def test_existing_file_mode_is_kept(log: Log) -> None:
    log.path.touch(mode=0o600)
    log.path.chmod(0o640)
    log.write(b"one\n")
    assert mode_of(log.path) == 0o640


def test_deleted_file_is_created_again(log: Log) -> None:
    log.write(b"one\n")
    log.path.unlink()
    log.write(b"two\n")
    assert log.path.read_bytes() == b"two\n"
    assert log.reported == []


def test_file_deleted_just_before_its_rotation_is_tolerated(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(*[LINE] * 8)
    rename = os.rename

    def unlink_then_rename(source: Path, target: Path) -> None:
        source.unlink()
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", unlink_then_rename)
        log.write(b"one\n")
    assert log.content == b"one\n"
    assert log.reported == []


def test_moved_file_is_not_written_to(log: Log) -> None:
    log.write(b"one\n")
    log.path.rename(log.path.with_name("robot.log.1"))
    log.write(b"two\n")
    assert log.path.with_name("robot.log.1").read_bytes() == b"one\n"
    assert log.path.read_bytes() == b"two\n"


def test_replaced_file_is_continued(log: Log) -> None:
    log.write(b"one\n")
    other = log.path.with_name("other")
    other.write_bytes(b"torn")
    other.rename(log.path)
    log.write(b"two\n")
    assert log.path.read_bytes() == b"torn\ntwo\n"


def test_truncated_file_is_continued(log: Log) -> None:
    log.write(*[LINE] * 8)
    os.truncate(log.path, 0)
    log.write(b"one\n")
    assert log.names == ["robot.log"]
    assert log.path.read_bytes() == b"one\n"


def test_removed_directory_is_created_again(log: Log) -> None:
    log.write(b"one\n")
    log.path.unlink()
    log.path.parent.rmdir()
    log.write(b"two\n")
    assert log.content == b"two\n"


def test_removed_rotated_files_are_tolerated(log: Log) -> None:
    log.fill(3)
    for path in log.rotated_files:
        path.unlink()
    log.write(numbered_lines(0, 500))
    assert log.content == b"last\n" + numbered_lines(0, 500)


def test_symlink_is_followed_and_its_target_rotated(log: Log) -> None:
    behind = log.path.parent.parent / "data" / "real.log"
    log.path.symlink_to(behind)
    linked = Log(log.path)
    linked.write(numbered_lines(0, 200))
    linked.file.close()
    assert sorted(path.name for path in behind.parent.iterdir()) == [
        "real-20261115T051132.123Z.log",
        "real.log",
    ]
    assert log.path.is_symlink()
    assert log.names == ["robot.log"]


def test_relative_path_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    file = RotatingFile(Path("robot.log"), SMALL_ROTATION, ManualClock())
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write(b"one\n")
    file.close()
    assert (tmp_path / "robot.log").read_bytes() == b"one\n"


def test_directory_at_the_path_is_reported_until_it_is_removed(log: Log) -> None:
    log.path.mkdir()
    log.write(b"one\n", b"two\n")
    log.write(b"three\n")
    reported = f'"{log.path}" cannot be written: Is a directory; specify a file'
    assert (log.fault(), log.reported) == (reported, [reported])
    log.path.rmdir()
    log.write(b"four\n")
    assert (log.fault(), log.reported) == (None, [reported, None])
    assert log.path.read_bytes() == b"dropped 3 lines here: Is a directory\nfour\n"


def test_file_in_place_of_the_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = Log(tmp_path / "file" / "robot.log")
    log.write(b"one\n")
    assert log.reported == [
        f'"{log.path}" cannot be written: "{tmp_path / "file"}": File exists; '
        "not a directory; choose another location"
    ]
    (tmp_path / "file").unlink()
    log.write(b"two\n")
    log.file.close()
    assert log.content == b"dropped 1 line here: File exists\ntwo\n"


def test_fifo_is_neither_written_nor_renamed(log: Log) -> None:
    os.mkfifo(log.path)
    log.write(b"one\n")
    log.write(numbered_lines(0, 1000))
    assert log.reported == [
        f'"{log.path}" cannot be written: not a regular file; dropping lines until it can'
    ]
    assert log.names == ["robot.log"]


def test_symlink_loop_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "robot.log"
    path.symlink_to(path)
    log = Log(path)
    log.write(b"one\n")
    log.file.close()
    assert log.reported[0] is not None
    assert "symbolic links" in log.reported[0]


def test_temporary_disk_error_drops_and_counts_lines(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"two\n", b"three\n")
        log.write(b"four\n")
    assert log.reported == [f'"{log.path}" cannot be written: Input/output error; check the disk']
    log.write(b"five\n")
    assert log.reported[1:] == [None]
    assert log.content == b"one\ndropped 3 lines here: Input/output error\nfive\n"


def test_dropped_notice_respects_the_file_size(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(*[LINE] * 7, b"x" * 999, b"\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"one\n")
    log.write(b"two\n")
    assert log.path.read_bytes() == b"dropped 1 line here: Input/output error\ntwo\n"


def test_close_writes_the_dropped_notice(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"two\n")
    log.file.close()
    assert log.content == b"one\ndropped 1 line here: Input/output error\n"


def test_close_tolerates_a_failing_disk(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"one\n")
        log.file.close()
    assert log.content == b""


def test_short_write_is_repeated_on_a_new_line(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    write, room = os.write, iter((6, 2, 5))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda to, data: write(to, data[: next(room, None)]))
        log.write(b"one\n", b"two\n", b"three\n")
    assert log.content == b"one\ntw\nt\ntwo\nthree\n"


def test_dropped_lines_of_a_partial_write_are_counted_once(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, iter((6,))

    def write_until_full(descriptor: int, data: bytes) -> int:
        if left := next(room, 0):
            return write(descriptor, data[:left])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_until_full)
        log.write(b"one\n", b"two\n", b"three\n")
    log.write(b"four\n")
    assert log.content == (b"one\ntw\ndropped 2 lines here: No space left on device\nfour\n")


async def test_full_disk_evicts_the_oldest_file_once_per_interval(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.fill(3)
    oldest, *rest = log.rotated_files
    with failing_write(monkeypatch, errno.ENOSPC, while_true=oldest.exists):
        log.write(b"one\n")
    assert log.rotated_files == rest
    assert log.reported == []
    with failing_write(monkeypatch, errno.ENOSPC, while_true=rest[0].exists):
        log.write(b"two\n")
        assert log.rotated_files == rest
        assert log.fault() == (
            f'"{log.path}" cannot be written: No space left on device; free some disk space'
        )
        await log.clock.advance(EVICTION_INTERVAL)
        log.write(b"three\n")
    assert log.rotated_files == rest[1:]
    assert log.fault() is None
    assert log.path.read_bytes() == (
        b"last\none\ndropped 1 line here: No space left on device\nthree\n"
    )


def test_full_disk_without_rotated_files_removes_nothing(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.ENOSPC):
        log.write(b"two\n")
    assert log.path.read_bytes() == b"one\n"


@pytest.fixture
def no_renaming(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    def raise_permission_error(source: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(target))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", raise_permission_error)
        yield patch


def test_file_that_cannot_be_rotated_grows_up_to_the_limit(
    log: Log, no_renaming: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        log.write(LINE)
    reported = (
        f'"{log.path}" cannot be %s: Permission denied; '
        "give the server's user write access to the file and its directory"
    )
    assert log.reported == [reported % "rotated", reported % "written"]
    assert log.content == LINE * 24
    no_renaming.undo()
    log.write(b"one\n")
    assert log.reported[2:] == [None]
    assert log.content == LINE * 24 + b"dropped 26 lines here: Permission denied\none\n"


async def test_old_file_that_cannot_be_rotated_is_still_written(
    log: Log, no_renaming: pytest.MonkeyPatch
) -> None:
    log.write(b"one\n")
    await log.clock.advance(DAY)
    log.write(b"two\n")
    assert log.content == b"one\ntwo\n"
    assert "cannot be rotated" in (log.fault() or "")
    os.truncate(log.path, 0)
    log.write(b"three\n")
    assert log.fault() is None


def test_log_stops_at_the_total_size_when_files_cannot_be_removed(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_permission_error(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", raise_permission_error)
        log.write(numbered_lines(0, 1000))
        oldest = log.rotated_files[0]
        assert log.size <= SMALL_ROTATION.total
    assert log.reported == [
        f'"{log.path}" cannot be written: "{oldest}": Operation not permitted; '
        "give the server's user write access to the file and its directory"
    ]
    log.write(b"one\n")
    assert log.path.read_bytes() == b"dropped 488 lines here: Operation not permitted\none\n"


def test_line_longer_than_a_file_is_dropped(log: Log) -> None:
    long = b"x" * FILE_SIZE + b"\n"
    log.write(b"one\n", long, b"two\n", long)
    notice = b"dropped 1 line here: longer than the maximum file size, 8192 bytes\n"
    assert log.content == b"one\n" + notice + b"two\n" + notice
    assert log.names == ["robot.log"]
    assert log.reported == []


def test_line_as_long_as_a_file_follows_a_dropped_notice(log: Log) -> None:
    longest = b"x" * (FILE_SIZE - 1) + b"\n"
    log.write(b"x" * FILE_SIZE + b"\n", longest, b"one\n")
    assert [len(file.read_bytes()) for file in log.files[1:]] == [FILE_SIZE, 4]
    assert log.files[0].read_bytes().startswith(b"dropped 1 line here")


def test_unterminated_lines_are_terminated(log: Log) -> None:
    log.write(b"one\ntwo")
    log.write(b"three\n")
    assert log.content == b"one\ntwo\nthree\n"


def test_close_does_not_wait_for_a_hanging_write(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, resume, write = threading.Event(), threading.Event(), os.write

    def hang(descriptor: int, data: bytes) -> int:
        hanging.set()
        assert resume.wait(DEADLINE)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", hang)
    thread = threading.Thread(target=log.write, args=(b"one\n",))
    thread.start()
    try:
        assert hanging.wait(DEADLINE)
        started = time.monotonic()
        log.file.close()
        assert time.monotonic() - started < limit(1)
    finally:
        resume.set()
        thread.join()
    assert log.content == b"one\n"


@pytest.mark.parametrize(
    ("size", "total"),
    [(MIN_FILE_SIZE - 1, 1 << 20), (0, 0), (-1, 1 << 20), (MIN_FILE_SIZE, MIN_FILE_SIZE - 1)],
)
def test_invalid_rotation_raises(size: int, total: int) -> None:
    with pytest.raises(ValueError, match="a file needs at least 4096 bytes"):
        Rotation(size=size, total=total)


def test_describe_error_renders_an_undecodable_path() -> None:
    reported = describe_error(Path(os.fsdecode(b"/a\xff")), "written", OSError(errno.EIO, "no"))
    assert reported == '"/a\ufffd" cannot be written: no; check the disk'
