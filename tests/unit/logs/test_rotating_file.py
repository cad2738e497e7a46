"""The rotating file: what is kept, under which names, and what happens if it cannot be written."""

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

DEADLINE = 10.0
NOW = 1_794_719_492.123
"""2026-11-15T05:11:32.123Z"""
HOUR = 3600.0
DAY = 24 * HOUR
FILE = 8192
SMALL = Rotation(size=FILE, total=4 * FILE)
LINE = b"x" * 1023 + b"\n"
"""Eight of them fill a file."""


class Log:
    """A rotating file, what it has told of itself, and what is on the disk."""

    def __init__(self, path: Path, rotation: Rotation = SMALL, start: float = NOW) -> None:
        self.path = path
        self.rotation = rotation
        self.clock = ManualClock(start)
        self.told: list[str | None] = []
        self.open()

    def open(self) -> None:
        self.file = RotatingFile(self.path, self.rotation, self.clock, self.told.append)

    def restart(self) -> None:
        self.file.close()
        self.open()

    def write(self, *lines: bytes) -> None:
        self.file.write(b"".join(lines))

    def fill(self, files: int) -> None:
        """Rotates that many times, to an empty current file."""
        for _ in range(files):
            self.write(*[LINE] * 8)
        self.write(b"last\n")

    def fault(self) -> str | None:
        return self.file.fault

    @property
    def names(self) -> list[str]:
        return sorted(entry.name for entry in self.path.parent.iterdir())

    @property
    def older(self) -> list[Path]:
        """Of a directory that holds nothing else."""
        return [self.path.with_name(name) for name in self.names if name != self.path.name]

    @property
    def files(self) -> list[Path]:
        return [*self.older, *([self.path] if self.path.exists() else [])]

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
    """Every write fails as long as it should."""
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


def numbered(start: int, stop: int, length: int = 64) -> bytes:
    return b"".join(b"%0*d\n" % (length - 1, number) for number in range(start, stop))


def test_writes_lines_that_only_the_owner_reads(log: Log) -> None:
    log.write(b"one\n", "zwei: ü 機械 🤖\n".encode())
    log.write(b"three\n")
    assert log.path.read_text() == "one\nzwei: ü 機械 🤖\nthree\n"
    assert mode_of(log.path) == 0o600
    assert log.names == ["robot.log"]
    assert log.fault() is None
    assert log.told == []


def test_makes_missing_directories_that_only_the_owner_enters(tmp_path: Path) -> None:
    log = Log(tmp_path / "a" / "b" / "robot.log")
    log.write(b"one\n")
    log.file.close()
    assert log.content == b"one\n"
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_nothing_is_made_before_the_first_line(tmp_path: Path) -> None:
    Log(tmp_path / "a" / "robot.log").file.close()
    assert list(tmp_path.iterdir()) == []


def test_a_full_file_is_rotated(log: Log) -> None:
    log.write(*[LINE] * 8)
    assert log.names == ["robot.log"]
    log.write(b"next\n")
    assert log.names == ["robot-20261115T051132.123Z.log", "robot.log"]
    assert log.older[0].read_bytes() == LINE * 8
    assert log.path.read_bytes() == b"next\n"
    assert mode_of(log.path) == mode_of(log.older[0]) == 0o600


def test_a_batch_larger_than_a_file_is_split_between_lines(log: Log) -> None:
    lines = numbered(0, 300, length=100)
    log.write(lines)
    assert [file.stat().st_size for file in log.files] == [8100, 8100, 8100, 5700]
    assert log.content == lines


def test_the_rotated_files_are_known_the_oldest_first(log: Log) -> None:
    assert log.file.list_rotated() == []
    log.fill(3)
    assert log.file.list_rotated() == log.older != []
    assert Log(log.path.parent / "missing" / "robot.log").file.list_rotated() == []


def test_rotations_within_one_moment_have_names_of_their_own(log: Log) -> None:
    log.write(numbered(0, 450))
    assert log.names == [
        "robot-20261115T051132.123Z.log",
        "robot-20261115T051132.124Z.log",
        "robot-20261115T051132.125Z.log",
        "robot.log",
    ]
    assert log.content == numbered(0, 450)


async def test_names_go_on_behind_the_newest_if_the_clock_was_set_back(log: Log) -> None:
    log.fill(1)
    log.file.close()
    earlier = Log(log.path, start=NOW - DAY)
    earlier.fill(1)
    earlier.file.close()
    assert log.older[-1].name == "robot-20261115T051132.124Z.log"


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
def test_the_name_of_a_rotated_file(path: str, name: str) -> None:
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
def test_other_names_are_not_ours(name: str) -> None:
    assert not RotatedNames("robot", ".log").matches(name)


@given(
    moments=st.lists(st.floats(0, 4e9), min_size=1, max_size=20),
    stem=st.text("ab-.Z0", min_size=1),
    suffix=st.sampled_from(["", ".log", ".0Z"]),
)
def test_names_are_unique_and_sort_in_the_order_of_their_making(
    moments: list[float], stem: str, suffix: str
) -> None:
    names, made = RotatedNames(stem, suffix), list[str]()
    for now in moments:
        made.append(names.next_name(now, made[-1] if made else None))
    assert made == sorted(set(made))
    assert all(names.matches(name) for name in made)


def test_the_oldest_make_room(log: Log) -> None:
    for number in range(0, 2000, 10):
        log.write(numbered(number, number + 10))
        assert log.size <= SMALL.total
    kept = log.content
    assert numbered(0, 2000).endswith(kept)
    assert len(kept) > SMALL.total - 2 * FILE


def test_files_of_earlier_runs_count(log: Log) -> None:
    for hour in range(6):
        name = RotatedNames("robot", ".log").name_at(NOW - hour * HOUR)
        log.path.with_name(name).write_bytes(LINE * 6)
    log.write(b"one\n")
    assert [file.name for file in log.older] == [
        RotatedNames("robot", ".log").name_at(NOW - hour * HOUR) for hour in (3, 2, 1, 0)
    ]
    assert log.size <= SMALL.total


def test_what_is_not_ours_is_never_touched(log: Log) -> None:
    directory = log.path.parent
    foreign = {
        name: os.urandom(3 * FILE)
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
    log.write(numbered(0, 2000))
    for name, content in foreign.items():
        assert (directory / name).read_bytes() == content
    assert elsewhere.read_bytes() == LINE * 100
    assert (directory / "robot-20251115T051132.123Z.log").is_symlink()
    assert (directory / "robot-20251115T051132.124Z.log").is_dir()


def test_two_logs_in_one_directory_leave_each_other_alone(tmp_path: Path) -> None:
    robot, story = Log(tmp_path / "robot.log"), Log(tmp_path / "robot-story.log")
    robot.write(numbered(0, 300))
    story.write(numbered(0, 1000))
    robot.file.close()
    story.file.close()
    assert b"".join(path.read_bytes() for path in sorted(tmp_path.glob("robot-2*"))) == numbered(
        0, 256
    )


@given(sizes=st.lists(st.integers(0, 100)), most=st.integers(0, 1000))
def test_no_more_is_removed_than_must_be(sizes: list[int], most: int) -> None:
    older = [OlderFile(str(number), size) for number, size in enumerate(sizes)]
    removed = find_surplus(older, most)
    assert list(removed) == older[: len(removed)]
    assert sum(file.size for file in older[len(removed) :]) <= most
    if removed:
        assert sum(file.size for file in older[len(removed) - 1 :]) > most


@given(lengths=st.lists(st.integers(1, 30)), start=st.integers(0, 30), room=st.integers(-10, 1000))
def test_only_whole_lines_are_fitted(lengths: list[int], start: int, room: int) -> None:
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
def test_everything_is_kept_in_order_within_the_bound(
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


async def test_an_old_file_is_rotated_with_the_next_line(log: Log) -> None:
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


async def test_no_file_is_too_old_for_age_zero(tmp_path: Path) -> None:
    log = Log(tmp_path / "robot.log", Rotation(age=0))
    log.write(b"one\n")
    await log.clock.advance(1000 * DAY)
    log.write(b"two\n")
    log.restart()
    log.write(b"three\n")
    log.file.close()
    assert log.path.read_bytes() == b"one\ntwo\nthree\n"


@pytest.mark.parametrize("spelled", [as_text, as_json])
async def test_age_survives_restarts(log: Log, spelled: Callable[[Entry], str]) -> None:
    for _ in range(24):
        entry = Entry(log.clock.time(), 20, "robot", "main.py:1", "since 2020-01-01T00:00:00Z")
        log.write(spelled(entry).encode(), b"\n")
        # The last change is this computer's time, which is not the clock's.
        os.utime(log.path, (log.clock.time(), log.clock.time()))
        await log.clock.advance(HOUR)
        log.restart()
        assert log.names == ["robot.log"]
    log.write(b"tomorrow\n")
    assert log.names == ["robot-20261116T051132.123Z.log", "robot.log"]
    assert log.path.read_bytes() == b"tomorrow\n"


@pytest.mark.parametrize(("age", "rotated"), [(DAY - 1, False), (DAY, True)])
def test_a_file_without_times_is_as_old_as_its_last_change(
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
def test_when_a_file_was_begun(beginning: bytes, seconds: float) -> None:
    assert find_start_time(beginning, changed=7.0) == pytest.approx(seconds)


async def test_a_file_from_the_future_is_new(log: Log) -> None:
    log.path.write_bytes(b"2027-11-15T05:11:32.123Z\n")
    log.write(b"one\n")
    await log.clock.advance(DAY - 1)
    log.write(b"two\n")
    assert log.names == ["robot.log"]


def test_a_restart_appends(log: Log) -> None:
    for number in range(100):
        log.write(numbered(number, number + 1))
        log.restart()
    assert log.names == ["robot.log"]
    assert log.content == numbered(0, 100)


def test_a_file_that_is_too_large_at_the_start_is_rotated(log: Log) -> None:
    log.path.write_bytes(LINE * 9)
    log.write(b"one\n")
    assert log.older[0].read_bytes() == LINE * 9
    assert log.path.read_bytes() == b"one\n"


def test_a_file_larger_than_all_may_be_together_gives_way(log: Log) -> None:
    log.path.write_bytes(LINE * 100)
    log.write(b"one\n")
    assert log.content == b"one\n"
    assert log.names == ["robot.log"]


@pytest.mark.parametrize("tail", [b"torn", b"whole\ntorn", "ü".encode()[:1], b"x" * 10])
def test_a_torn_line_gets_its_end(log: Log, tail: bytes) -> None:
    log.path.write_bytes(tail)
    log.write(b"one\n")
    log.write(b"two\n")
    assert log.path.read_bytes() == tail + b"\none\ntwo\n"


def test_a_torn_line_in_a_full_file_is_left_as_it_is(log: Log) -> None:
    log.path.write_bytes(b"x" * FILE)
    log.write(b"one\n")
    assert log.older[0].read_bytes() == b"x" * FILE
    assert log.path.read_bytes() == b"one\n"


def test_what_an_administrator_allowed_stays_allowed(log: Log) -> None:
    log.path.touch(mode=0o600)
    log.path.chmod(0o640)
    log.write(b"one\n")
    assert mode_of(log.path) == 0o640


def test_a_deleted_file_is_made_again(log: Log) -> None:
    log.write(b"one\n")
    log.path.unlink()
    log.write(b"two\n")
    assert log.path.read_bytes() == b"two\n"
    assert log.told == []


def test_a_file_that_is_deleted_just_before_it_is_rotated(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(*[LINE] * 8)
    rename = os.rename

    def too_late(source: Path, target: Path) -> None:
        source.unlink()
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", too_late)
        log.write(b"one\n")
    assert log.content == b"one\n"
    assert log.told == []


def test_a_moved_file_is_left_alone(log: Log) -> None:
    log.write(b"one\n")
    log.path.rename(log.path.with_name("robot.log.1"))
    log.write(b"two\n")
    assert log.path.with_name("robot.log.1").read_bytes() == b"one\n"
    assert log.path.read_bytes() == b"two\n"


def test_another_file_in_its_place_is_continued(log: Log) -> None:
    log.write(b"one\n")
    other = log.path.with_name("other")
    other.write_bytes(b"torn")
    other.rename(log.path)
    log.write(b"two\n")
    assert log.path.read_bytes() == b"torn\ntwo\n"


def test_a_truncated_file_is_continued(log: Log) -> None:
    log.write(*[LINE] * 8)
    os.truncate(log.path, 0)
    log.write(b"one\n")
    assert log.names == ["robot.log"]
    assert log.path.read_bytes() == b"one\n"


def test_a_removed_directory_is_made_again(log: Log) -> None:
    log.write(b"one\n")
    log.path.unlink()
    log.path.parent.rmdir()
    log.write(b"two\n")
    assert log.content == b"two\n"


def test_rotated_files_that_somebody_removed_are_not_missed(log: Log) -> None:
    log.fill(3)
    for path in log.older:
        path.unlink()
    log.write(numbered(0, 500))
    assert log.content == b"last\n" + numbered(0, 500)


def test_a_link_is_followed_and_the_file_behind_it_rotated(log: Log) -> None:
    behind = log.path.parent.parent / "data" / "real.log"
    log.path.symlink_to(behind)
    linked = Log(log.path)
    linked.write(numbered(0, 200))
    linked.file.close()
    assert sorted(path.name for path in behind.parent.iterdir()) == [
        "real-20261115T051132.123Z.log",
        "real.log",
    ]
    assert log.path.is_symlink()
    assert log.names == ["robot.log"]


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    file = RotatingFile(Path("robot.log"), SMALL, ManualClock())
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write(b"one\n")
    file.close()
    assert (tmp_path / "robot.log").read_bytes() == b"one\n"


def test_a_directory_in_its_place(log: Log) -> None:
    log.path.mkdir()
    log.write(b"one\n", b"two\n")
    log.write(b"three\n")
    told = f'"{log.path}" cannot be written: Is a directory; specify a file'
    assert (log.fault(), log.told) == (told, [told])
    log.path.rmdir()
    log.write(b"four\n")
    assert (log.fault(), log.told) == (None, [told, None])
    assert log.path.read_bytes() == b"dropped 3 lines here: Is a directory\nfour\n"


def test_a_file_in_place_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = Log(tmp_path / "file" / "robot.log")
    log.write(b"one\n")
    assert log.told == [
        f'"{log.path}" cannot be written: "{tmp_path / "file"}": File exists; '
        "not a directory; choose another location"
    ]
    (tmp_path / "file").unlink()
    log.write(b"two\n")
    log.file.close()
    assert log.content == b"dropped 1 line here: File exists\ntwo\n"


def test_what_is_no_file_is_neither_written_nor_renamed(log: Log) -> None:
    os.mkfifo(log.path)
    log.write(b"one\n")
    log.write(numbered(0, 1000))
    assert log.told == [
        f'"{log.path}" cannot be written: not a regular file; dropping lines until it can'
    ]
    assert log.names == ["robot.log"]


def test_a_link_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "robot.log"
    path.symlink_to(path)
    log = Log(path)
    log.write(b"one\n")
    log.file.close()
    assert log.told[0] is not None
    assert "symbolic links" in log.told[0]


def test_a_disk_that_fails_for_a_while(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"two\n", b"three\n")
        log.write(b"four\n")
    assert log.told == [f'"{log.path}" cannot be written: Input/output error; check the disk']
    log.write(b"five\n")
    assert log.told[1:] == [None]
    assert log.content == b"one\ndropped 3 lines here: Input/output error\nfive\n"


def test_the_line_about_missing_ones_keeps_to_the_size_of_a_file(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(*[LINE] * 7, b"x" * 999, b"\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"one\n")
    log.write(b"two\n")
    assert log.path.read_bytes() == b"dropped 1 line here: Input/output error\ntwo\n"


def test_the_end_tells_of_what_is_missing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"two\n")
    log.file.close()
    assert log.content == b"one\ndropped 1 line here: Input/output error\n"


def test_a_disk_that_fails_to_the_end(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with failing_write(monkeypatch, errno.EIO):
        log.write(b"one\n")
        log.file.close()
    assert log.content == b""


def test_a_write_that_ends_early_is_continued_on_a_line_of_its_own(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, iter((6, 2, 5))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda to, data: write(to, data[: next(room, None)]))
        log.write(b"one\n", b"two\n", b"three\n")
    assert log.content == b"one\ntw\nt\ntwo\nthree\n"


def test_lines_are_counted_once_though_some_of_them_were_written(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, room = os.write, iter((6,))

    def fill_up(descriptor: int, data: bytes) -> int:
        if left := next(room, 0):
            return write(descriptor, data[:left])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill_up)
        log.write(b"one\n", b"two\n", b"three\n")
    log.write(b"four\n")
    assert log.content == (b"one\ntw\ndropped 2 lines here: No space left on device\nfour\n")


async def test_on_a_full_disk_the_oldest_file_gives_way_but_not_all_at_once(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.fill(3)
    oldest, *rest = log.older
    with failing_write(monkeypatch, errno.ENOSPC, while_true=oldest.exists):
        log.write(b"one\n")
    assert log.older == rest
    assert log.told == []
    with failing_write(monkeypatch, errno.ENOSPC, while_true=rest[0].exists):
        log.write(b"two\n")
        assert log.older == rest
        assert log.fault() == (
            f'"{log.path}" cannot be written: No space left on device; free some disk space'
        )
        await log.clock.advance(EVICTION_INTERVAL)
        log.write(b"three\n")
    assert log.older == rest[1:]
    assert log.fault() is None
    assert log.path.read_bytes() == (
        b"last\none\ndropped 1 line here: No space left on device\nthree\n"
    )


def test_without_rotated_files_nothing_gives_way(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"one\n")
    with failing_write(monkeypatch, errno.ENOSPC):
        log.write(b"two\n")
    assert log.path.read_bytes() == b"one\n"


@pytest.fixture
def no_renaming(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(source), None, str(target))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        yield patch


def test_a_file_that_cannot_be_rotated_grows_as_far_as_it_can_be_kept(
    log: Log, no_renaming: pytest.MonkeyPatch
) -> None:
    for _ in range(50):
        log.write(LINE)
    told = (
        f'"{log.path}" cannot be %s: Permission denied; '
        "give the server's user write access to the file and its directory"
    )
    assert log.told == [told % "rotated", told % "written"]
    assert log.content == LINE * 24
    no_renaming.undo()
    log.write(b"one\n")
    assert log.told[2:] == [None]
    assert log.content == LINE * 24 + b"dropped 26 lines here: Permission denied\none\n"


async def test_an_old_file_that_cannot_be_rotated_is_written_nevertheless(
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


def test_files_that_cannot_be_removed_stop_the_log_at_its_bound(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        log.write(numbered(0, 1000))
        oldest = log.older[0]
        assert log.size <= SMALL.total
    assert log.told == [
        f'"{log.path}" cannot be written: "{oldest}": Operation not permitted; '
        "give the server's user write access to the file and its directory"
    ]
    log.write(b"one\n")
    assert log.path.read_bytes() == b"dropped 488 lines here: Operation not permitted\none\n"


def test_a_line_longer_than_a_file_is_left_out(log: Log) -> None:
    long = b"x" * FILE + b"\n"
    log.write(b"one\n", long, b"two\n", long)
    notice = b"dropped 1 line here: longer than the maximum file size, 8192 bytes\n"
    assert log.content == b"one\n" + notice + b"two\n" + notice
    assert log.names == ["robot.log"]
    assert log.told == []


def test_a_line_as_long_as_a_file_behind_missing_ones(log: Log) -> None:
    longest = b"x" * (FILE - 1) + b"\n"
    log.write(b"x" * FILE + b"\n", longest, b"one\n")
    assert [len(file.read_bytes()) for file in log.files[1:]] == [FILE, 4]
    assert log.files[0].read_bytes().startswith(b"dropped 1 line here")


def test_lines_that_do_not_end_are_ended(log: Log) -> None:
    log.write(b"one\ntwo")
    log.write(b"three\n")
    assert log.content == b"one\ntwo\nthree\n"


def test_closing_leaves_a_write_alone_that_hangs(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    hanging, goes_on, write = threading.Event(), threading.Event(), os.write

    def hang(descriptor: int, data: bytes) -> int:
        hanging.set()
        assert goes_on.wait(DEADLINE)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", hang)
    thread = threading.Thread(target=log.write, args=(b"one\n",))
    thread.start()
    try:
        assert hanging.wait(DEADLINE)
        started = time.monotonic()
        log.file.close()
        assert time.monotonic() - started < 1
    finally:
        goes_on.set()
        thread.join()
    assert log.content == b"one\n"


@pytest.mark.parametrize(
    ("size", "total"),
    [(MIN_FILE_SIZE - 1, 1 << 20), (0, 0), (-1, 1 << 20), (MIN_FILE_SIZE, MIN_FILE_SIZE - 1)],
)
def test_a_rotation_that_cannot_be(size: int, total: int) -> None:
    with pytest.raises(ValueError, match="a file needs at least 4096 bytes"):
        Rotation(size=size, total=total)


def test_a_path_that_is_no_text_is_told_of_as_text() -> None:
    told = describe_error(Path(os.fsdecode(b"/a\xff")), "written", OSError(errno.EIO, "no"))
    assert told == '"/a\ufffd" cannot be written: no; check the disk'
