import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cogwork.core import atomic

LIMITED = """
import resource, signal, sys
from pathlib import Path
from cogwork.core import atomic
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    atomic.write(Path(sys.argv[1]), bytes(5000))
except OSError as error:
    sys.exit(f"errno {error.errno}")
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kept.json"
    path.write_bytes(b"old")
    return path


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    previous = os.umask(request.param)
    yield
    os.umask(previous)


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def full_disk(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def interrupted(*_: object) -> int:
    raise KeyboardInterrupt


def assert_untouched(file: Path) -> None:
    assert file.read_bytes() == b"old"
    assert names(file.parent) == [file.name]


@pytest.mark.parametrize("data", [b"", b"new", bytes(3_000_000)])
def test_replaces_the_content(file: Path, data: bytes) -> None:
    atomic.write(file, data)
    assert file.read_bytes() == data
    assert names(file.parent) == [file.name]


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_is_exact(file: Path, mode: int) -> None:
    atomic.write(file, b"new", mode)
    assert mode_of(file) == mode


def test_nobody_else_can_read_the_temporary_file_either(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def look(descriptor: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fchmod", look)
    previous = os.umask(0)
    try:
        atomic.write(file, b"new")
    finally:
        os.umask(previous)
    assert seen == [0o600]


def test_missing_directories_are_made_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "kept.json"
    previous = os.umask(0)
    try:
        atomic.write(path, b"new")
    finally:
        os.umask(previous)
    assert path.read_bytes() == b"new"
    assert [mode_of(directory) for directory in (path.parent, path.parent.parent)] == [0o700] * 2


@pytest.mark.parametrize("failure", [full_disk, interrupted])
@pytest.mark.parametrize("call", ["write", "fsync", "fchmod"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, failure: Callable[..., int]
) -> None:
    monkeypatch.setattr(os, call, failure)
    with pytest.raises((OSError, KeyboardInterrupt)):
        atomic.write(file, b"new")
    monkeypatch.undo()
    assert_untouched(file)


def test_a_disk_that_fills_up_halfway(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write

    def fills_up(descriptor: int, data: memoryview) -> int:
        return real_write(descriptor, data[:2]) if len(data) > 2 else full_disk()

    monkeypatch.setattr(os, "write", fills_up)
    with pytest.raises(OSError, match="No space left"):
        atomic.write(file, b"newer")
    monkeypatch.undo()
    assert_untouched(file)


def test_short_writes_are_continued(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:1]))
    atomic.write(file, b"newer")
    assert file.read_bytes() == b"newer"


def test_a_real_limit_on_the_file_size(file: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", LIMITED, str(file)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=20,
        check=False,
    )
    assert child.stderr.strip() == f"errno {errno.EFBIG}"
    assert_untouched(file)


def test_a_directory_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "kept.json").mkdir()
    with pytest.raises(IsADirectoryError):
        atomic.write(tmp_path / "kept.json", b"new")
    assert names(tmp_path) == ["kept.json"]


def test_a_link_is_replaced_and_its_target_left_alone(file: Path) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    atomic.write(link, b"new")
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert file.read_bytes() == b"old"


def test_what_a_killed_writer_left_is_removed(file: Path) -> None:
    stale = [file.with_name(f".kept.json.{number:016x}.tmp") for number in range(3)]
    for path in stale:
        path.write_bytes(b"half")
    atomic.write(file, b"new")
    assert names(file.parent) == [file.name]


def test_temporary_files_of_other_files_are_left_alone(file: Path) -> None:
    others = [".kept.json.0123456789abcdef.tmp", ".kept.tmp", ".kept.mine.tmp", "kept.tmp"]
    for name in others:
        file.with_name(name).write_bytes(b"theirs")
    atomic.write(file.with_name("kept"), b"new")
    assert names(file.parent) == sorted([*others, "kept", "kept.json"])


def test_writers_at_the_same_time_do_not_disturb_each_other(file: Path) -> None:
    contents = [bytes([number]) * 10_000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: atomic.write(file, content), contents))
    assert file.read_bytes() in contents
    assert names(file.parent) == [file.name]
