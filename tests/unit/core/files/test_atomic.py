import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cogwork.core.files import atomic

SIZE_LIMITED_WRITER = """
import resource, signal, sys
from pathlib import Path
from cogwork.core.files import atomic
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


def file_names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def raise_disk_full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def raise_keyboard_interrupt(*_: object) -> int:
    raise KeyboardInterrupt


def assert_untouched(file: Path) -> None:
    assert file.read_bytes() == b"old"
    assert file_names(file.parent) == [file.name]


@pytest.mark.parametrize("data", [b"", b"new", bytes(3_000_000)])
def test_write_replaces_the_content(file: Path, data: bytes) -> None:
    atomic.write(file, data)
    assert file.read_bytes() == data
    assert file_names(file.parent) == [file.name]


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_file_mode_is_independent_of_the_umask(file: Path, mode: int) -> None:
    atomic.write(file, b"new", mode)
    assert mode_of(file) == mode


def test_temporary_file_is_private(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def record_mode(descriptor: int, mode: int) -> None:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))

    monkeypatch.setattr(os, "fchmod", record_mode)
    previous = os.umask(0)
    try:
        atomic.write(file, b"new")
    finally:
        os.umask(previous)
    assert seen == [0o600]


def test_missing_directories_are_created_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "kept.json"
    previous = os.umask(0)
    try:
        atomic.write(path, b"new")
    finally:
        os.umask(previous)
    assert path.read_bytes() == b"new"
    assert [mode_of(directory) for directory in (path.parent, path.parent.parent)] == [0o700] * 2


@pytest.mark.parametrize("failure", [raise_disk_full, raise_keyboard_interrupt])
@pytest.mark.parametrize("call", ["write", "fsync", "fchmod"])
def test_failed_write_leaves_only_the_old_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, call: str, failure: Callable[..., int]
) -> None:
    monkeypatch.setattr(os, call, failure)
    with pytest.raises((OSError, KeyboardInterrupt)):
        atomic.write(file, b"new")
    monkeypatch.undo()
    assert_untouched(file)


def test_disk_full_during_the_write_leaves_the_old_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write

    def write_until_full(descriptor: int, data: memoryview) -> int:
        return real_write(descriptor, data[:2]) if len(data) > 2 else raise_disk_full()

    monkeypatch.setattr(os, "write", write_until_full)
    with pytest.raises(OSError, match="No space left"):
        atomic.write(file, b"newer")
    monkeypatch.undo()
    assert_untouched(file)


def test_short_writes_are_continued(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:1]))
    atomic.write(file, b"newer")
    assert file.read_bytes() == b"newer"


def test_file_size_limit_leaves_the_old_file(file: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", SIZE_LIMITED_WRITER, str(file)],
        stderr=subprocess.PIPE,
        text=True,
        timeout=20,
        check=False,
    )
    assert child.stderr.strip() == f"errno {errno.EFBIG}"
    assert_untouched(file)


def test_write_to_a_directory_path_raises(tmp_path: Path) -> None:
    (tmp_path / "kept.json").mkdir()
    with pytest.raises(IsADirectoryError):
        atomic.write(tmp_path / "kept.json", b"new")
    assert file_names(tmp_path) == ["kept.json"]


def test_symlink_is_replaced_and_its_target_kept(file: Path) -> None:
    link = file.with_name("link.json")
    link.symlink_to(file)
    atomic.write(link, b"new")
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"
    assert file.read_bytes() == b"old"


def test_stale_temporary_files_are_removed(file: Path) -> None:
    stale = [file.with_name(f".kept.json.{number:016x}.tmp") for number in range(3)]
    for path in stale:
        path.write_bytes(b"half")
    atomic.write(file, b"new")
    assert file_names(file.parent) == [file.name]


def test_temporary_files_of_other_files_are_kept(file: Path) -> None:
    others = [".kept.json.0123456789abcdef.tmp", ".kept.tmp", ".kept.mine.tmp", "kept.tmp"]
    for name in others:
        file.with_name(name).write_bytes(b"theirs")
    atomic.write(file.with_name("kept"), b"new")
    assert file_names(file.parent) == sorted([*others, "kept", "kept.json"])


def test_concurrent_writers_do_not_conflict(file: Path) -> None:
    contents = [bytes([number]) * 10_000 for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: atomic.write(file, content), contents))
    assert file.read_bytes() in contents
    assert file_names(file.parent) == [file.name]
