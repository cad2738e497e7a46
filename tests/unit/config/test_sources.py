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

from cogwork.config.file import Unreadable
from cogwork.config.sources import Candidate, FileSource, PushedSource
from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.reconciler import Superseded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


@pytest.fixture
async def quick(path: Path) -> AsyncIterator[FileSource]:
    """Looks often, so that a test takes milliseconds on the real clock and the real disk."""
    source = FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    yield source
    await source.aclose()


async def taken(source: FileSource) -> Candidate:
    return await asyncio.wait_for(source.next(), 5)


async def test_the_file_is_there_at_once(path: Path, quick: FileSource) -> None:
    path.write_text("{}")
    candidate = await taken(quick)
    assert (candidate.content, candidate.file) == ("{}", str(path))


async def test_writing_in_place_is_noticed(path: Path, quick: FileSource) -> None:
    path.write_text("{}")
    await taken(quick)
    path.write_text('{"debug": true}')
    assert (await taken(quick)).content == '{"debug": true}'


async def test_saving_by_rename_is_noticed_again_and_again(path: Path, quick: FileSource) -> None:
    path.write_text("0")
    await taken(quick)
    for turn in range(1, 6):
        beside = path.with_suffix(".swp")
        beside.write_text(str(turn))
        beside.rename(path)
        assert (await taken(quick)).content == str(turn)


async def test_a_link_that_is_pointed_elsewhere_is_noticed(path: Path, quick: FileSource) -> None:
    for name in ("one", "two"):
        (path.parent / name).write_text(name)
    path.symlink_to("one")
    assert (await taken(quick)).content == "one"
    beside = path.with_suffix(".new")
    beside.symlink_to("two")
    beside.rename(path)
    assert (await taken(quick)).content == "two"


async def test_the_same_text_again_is_no_change(path: Path, quick: FileSource) -> None:
    path.write_text("{}")
    await taken(quick)
    path.write_text("{}")
    os.utime(path, ns=(1, 1))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(quick.next(), 0.15)


async def test_a_file_that_vanishes_and_returns(path: Path, quick: FileSource) -> None:
    path.write_text("{}")
    await taken(quick)
    path.unlink()
    gone = await taken(quick)
    assert isinstance(gone.content, Unreadable)
    assert "does not exist" in str(gone.content)
    path.write_text("{}")
    assert (await taken(quick)).content == "{}"


async def test_a_file_that_is_not_there_at_start(quick: FileSource) -> None:
    assert isinstance((await taken(quick)).content, Unreadable)


class Disk:
    """Reading the file fails as long as there is an error."""

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


TRANSIENT = (
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


@pytest.mark.parametrize("name", [*TRANSIENT, "MemoryError"])
async def test_a_change_saved_while_reading_fails_is_read_later(
    path: Path, quick: FileSource, disk: Disk, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_text("{}")
    await taken(quick)
    attempts = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()
    disk.on_failure = lambda: loop.call_soon_threadsafe(attempts.release)  # type: ignore[assignment]
    number = getattr(errno, name, None)
    disk.error = OSError(number, os.strerror(number)) if number is not None else MemoryError()
    following = asyncio.ensure_future(quick.next())
    path.write_text('{"debug": true}')
    async with asyncio.timeout(10):
        await attempts.acquire()
        await attempts.acquire()
    assert not following.done()
    disk.error = None
    assert (await asyncio.wait_for(following, 5)).content == '{"debug": true}'
    assert sum("cannot read" in record.message for record in caplog.records) == 1


async def test_the_first_file_that_cannot_be_read_for_now_is_read_later(
    path: Path, quick: FileSource, disk: Disk
) -> None:
    path.write_text("{}")
    disk.error = OSError(errno.EMFILE, "Too many open files")
    assert isinstance((await taken(quick)).content, Unreadable)
    disk.error = None
    assert (await taken(quick)).content == "{}"


async def test_attempts_come_less_and_less_often(path: Path, disk: Disk) -> None:
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
        async with asyncio.timeout(20):
            while len(moments) < 8:
                await pass_time(clock, 1)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await source.aclose()
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    assert gaps[0] < gaps[2] < gaps[4]
    assert gaps[-1] >= 2.5


async def test_a_file_that_is_gone_only_while_it_is_read_is_read_again(
    path: Path, quick: FileSource, disk: Disk
) -> None:
    """Its signature is the same before and after, as with a link that is swapped."""
    path.write_text("{}")
    await taken(quick)
    disk.error = FileNotFoundError(errno.ENOENT, "No such file or directory")
    path.write_text("[]")
    assert isinstance((await taken(quick)).content, Unreadable)
    disk.error = None
    assert (await taken(quick)).content == "[]"


async def test_without_a_thread_the_file_is_read_later(
    path: Path, quick: FileSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("{}")
    with monkeypatch.context() as patch:

        def fail(*_: object) -> NoReturn:
            raise RuntimeError("can't start new thread")

        patch.setattr(threading.Thread, "start", fail)
        assert isinstance((await taken(quick)).content, Unreadable)
    assert (await taken(quick)).content == "{}"


async def test_a_writer_who_pauses_is_read_once_when_finished(path: Path) -> None:
    clock = ManualClock()
    source = FileSource(path, clock, poll_interval=0.25, debounce=0.25)
    path.write_text("{")
    await source.next()
    following = asyncio.ensure_future(source.next())
    try:
        for text in ('{"a"', '{"a": 1', '{"a": 1}'):
            path.write_text(text)
            await pass_time(clock, 0.2)
            assert not following.done()
        await pass_time(clock, 1.0)
        assert (await asyncio.wait_for(following, 5)).content == '{"a": 1}'
    finally:
        following.cancel()
        await source.aclose()


async def pass_time(clock: ManualClock, seconds: float) -> None:
    """Small steps, with real time between them for the thread that looks at the disk."""
    for _ in range(round(seconds / 0.05)):
        await clock.advance(0.05)
        await asyncio.sleep(0.002)


async def test_what_is_pushed_arrives_and_the_newest_counts() -> None:
    source = PushedSource()
    first = source.push("1")
    second = source.push({"debug": True})
    assert isinstance(await first, Superseded)
    candidate = await source.next()
    assert candidate.content == {"debug": True}
    assert candidate.verdict is second
    await source.aclose()


async def test_waiting_for_a_push() -> None:
    source = PushedSource()
    waiting = asyncio.ensure_future(source.next())
    await asyncio.sleep(0)
    assert not waiting.done()
    source.push("{}")
    assert (await waiting).content == "{}"


async def test_closing_decides_what_was_not_taken() -> None:
    source = PushedSource()
    pushed = source.push("{}")
    await source.aclose()
    assert isinstance(await pushed, Superseded)
