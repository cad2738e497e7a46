from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cogwork.config.file import Unreadable
from cogwork.config.sources import Candidate, FileSource, PushedSource
from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.reconcile import Superseded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "machine.json"


@pytest.fixture
async def quick(path: Path) -> AsyncIterator[FileSource]:
    """Looks often, so that a test takes milliseconds on the real clock and the real disk."""
    source = FileSource(path, SystemClock(), look_every=0.005, quiet=0.02)
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
    assert "no such file" in str(gone.content)
    path.write_text("{}")
    assert (await taken(quick)).content == "{}"


async def test_a_file_that_is_not_there_at_start(quick: FileSource) -> None:
    assert isinstance((await taken(quick)).content, Unreadable)


async def test_a_writer_who_pauses_is_read_once_when_finished(path: Path) -> None:
    clock = ManualClock()
    source = FileSource(path, clock, look_every=0.25, quiet=0.25)
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
