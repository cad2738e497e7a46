from __future__ import annotations

import asyncio
import errno
import itertools
import os
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from tests.support.waiting import run_others, wait_until_asleep

from cogwork.config.source.sources import ConfigCandidate, FileSource, PushedSource
from cogwork.config.text.file import Unreadable
from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.reconciler import Superseded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


@pytest.fixture
async def fast_source(path: Path) -> AsyncIterator[FileSource]:
    """A source that polls often, so that tests with the real clock and disk take milliseconds."""
    source = FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    yield source
    await source.aclose()


async def next_candidate(source: FileSource) -> ConfigCandidate:
    return await asyncio.wait_for(source.next(), 5)


async def test_first_candidate_is_the_existing_file(path: Path, fast_source: FileSource) -> None:
    path.write_text("{}")
    candidate = await next_candidate(fast_source)
    assert (candidate.content, candidate.file) == ("{}", str(path))


async def test_write_in_place_is_detected(path: Path, fast_source: FileSource) -> None:
    path.write_text("{}")
    await next_candidate(fast_source)
    path.write_text('{"debug": true}')
    assert (await next_candidate(fast_source)).content == '{"debug": true}'


async def test_repeated_save_by_rename_is_detected(path: Path, fast_source: FileSource) -> None:
    path.write_text("0")
    await next_candidate(fast_source)
    for turn in range(1, 6):
        beside = path.with_suffix(".swp")
        beside.write_text(str(turn))
        beside.rename(path)
        assert (await next_candidate(fast_source)).content == str(turn)


async def test_replaced_symlink_is_detected(path: Path, fast_source: FileSource) -> None:
    for name in ("one", "two"):
        (path.parent / name).write_text(name)
    path.symlink_to("one")
    assert (await next_candidate(fast_source)).content == "one"
    beside = path.with_suffix(".new")
    beside.symlink_to("two")
    beside.rename(path)
    assert (await next_candidate(fast_source)).content == "two"


async def test_rewriting_the_same_text_is_not_a_change(path: Path, fast_source: FileSource) -> None:
    path.write_text("{}")
    await next_candidate(fast_source)
    path.write_text("{}")
    os.utime(path, ns=(1, 1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(fast_source.next(), 0.15)


async def test_deleted_and_restored_file_is_detected(path: Path, fast_source: FileSource) -> None:
    path.write_text("{}")
    await next_candidate(fast_source)
    path.unlink()
    gone = await next_candidate(fast_source)
    assert isinstance(gone.content, Unreadable)
    assert "does not exist" in str(gone.content)
    path.write_text("{}")
    assert (await next_candidate(fast_source)).content == "{}"


async def test_missing_file_at_start_is_unreadable(fast_source: FileSource) -> None:
    assert isinstance((await next_candidate(fast_source)).content, Unreadable)


class Disk:
    """Make reading the file fail while `error` is set."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: Exception | None = None
        self.on_failure: Callable[[], None] = lambda: None
        self._path = path
        self._open = Path.open
        disk = self

        def open_or_fail(self: Path, *arguments: Any, **options: Any) -> Any:
            return disk.open(self, *arguments, **options)

        monkeypatch.setattr(Path, "open", open_or_fail)

    def open(self, path: Path, *arguments: Any, **options: Any) -> Any:
        error = self.error
        if error is not None and path == self._path and arguments == ("rb",):
            self.on_failure()
            raise error
        return self._open(path, *arguments, **options)


@pytest.fixture
def disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(path, monkeypatch)


TRANSIENT_ERRORS = (
    "EMFILE",
    "ENFILE",
    "ENOMEM",
    "EIO",
    "EACCES",
    "ESTALE",
    "ETIMEDOUT",
    "EINTR",
    "EAGAIN",
)


@pytest.mark.parametrize("name", [*TRANSIENT_ERRORS, "MemoryError"])
async def test_change_during_a_transient_read_error_is_read_later(
    path: Path, fast_source: FileSource, disk: Disk, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("{}")
    await next_candidate(fast_source)
    attempts = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    disk.on_failure = lambda: loop.call_soon_threadsafe(attempts.release)  # type: ignore[assignment]
    number = getattr(errno, name, None)
    disk.error = OSError(number, os.strerror(number)) if number is not None else MemoryError()
    following = asyncio.ensure_future(fast_source.next())
    path.write_text('{"debug": true}')
    async with asyncio.timeout(60):
        await attempts.acquire()
        await attempts.acquire()
    assert not following.done()
    disk.error = None
    assert (await asyncio.wait_for(following, 5)).content == '{"debug": true}'
    assert sum("cannot read" in record.message for record in caplog.records) == 1


async def test_first_read_with_a_transient_error_is_retried(
    path: Path, fast_source: FileSource, disk: Disk
) -> None:
    path.write_text("{}")
    disk.error = OSError(errno.EMFILE, "Too many open files")
    assert isinstance((await next_candidate(fast_source)).content, Unreadable)
    disk.error = None
    assert (await next_candidate(fast_source)).content == "{}"


async def test_read_retries_back_off(path: Path, disk: Disk) -> None:
    clock = ManualClock()
    source = FileSource(path, clock)
    path.write_text("{}")
    await source.next()
    moments: list[float] = []
    disk.on_failure = lambda: moments.append(clock.monotonic())
    disk.error = OSError(errno.ENOMEM, "Cannot allocate memory")
    path.write_text("[]")
    following = asyncio.ensure_future(source.next())
    try:
        async with asyncio.timeout(60):
            while len(moments) < 8:
                await advance_slowly(clock, 1, following)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await source.aclose()
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[0] < gaps[2] < gaps[4]
    assert gaps[-1] >= 2.5


async def test_file_missing_only_during_the_read_is_read_again(
    path: Path, fast_source: FileSource, disk: Disk
) -> None:
    """The file signature is the same before and after, as with a replaced symbolic link."""
    path.write_text("{}")
    await next_candidate(fast_source)
    disk.error = FileNotFoundError(errno.ENOENT, "No such file or directory")
    path.write_text("[]")
    assert isinstance((await next_candidate(fast_source)).content, Unreadable)
    disk.error = None
    assert (await next_candidate(fast_source)).content == "[]"


async def test_file_is_read_later_when_no_thread_can_start(
    path: Path, fast_source: FileSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}")
    with monkeypatch.context() as patch:

        def fail(*_: object) -> NoReturn:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fail)
        assert isinstance((await next_candidate(fast_source)).content, Unreadable)
    assert (await next_candidate(fast_source)).content == "{}"


async def test_slow_write_is_read_once_when_complete(path: Path) -> None:
    clock = ManualClock()
    source = FileSource(path, clock, poll_interval=0.25, debounce=0.25)
    path.write_text("{")
    await source.next()
    following = asyncio.ensure_future(source.next())
    try:
        for text in ('{"a"', '{"a": 1', '{"a": 1}'):
            path.write_text(text)
            await advance_slowly(clock, 0.2, following)
            assert not following.done()
        await advance_slowly(clock, 1.0, following)
        assert (await asyncio.wait_for(following, 5)).content == '{"a": 1}'
    finally:
        following.cancel()
        await source.aclose()


async def advance_slowly(
    clock: ManualClock, seconds: float, following: asyncio.Future[ConfigCandidate]
) -> None:
    """Advance in small steps, and wait after each for the thread that polls the disk."""
    for _ in range(round(seconds / 0.05)):
        await clock.advance(0.05)
        await wait_until_asleep(clock, following)


async def test_newest_push_supersedes_the_older_one() -> None:
    source = PushedSource()
    first = source.push("1")
    second = source.push({"debug": True})
    assert isinstance(await first, Superseded)
    candidate = await source.next()
    assert candidate.content == {"debug": True}
    assert candidate.verdict is second
    await source.aclose()


async def test_next_waits_for_a_push() -> None:
    source = PushedSource()
    waiting = asyncio.ensure_future(source.next())
    await run_others()
    assert not waiting.done()
    source.push("{}")
    assert (await waiting).content == "{}"


async def test_close_supersedes_pending_pushes() -> None:
    source = PushedSource()
    pushed = source.push("{}")
    await source.aclose()
    assert isinstance(await pushed, Superseded)
