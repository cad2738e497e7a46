from __future__ import annotations

import asyncio

import pytest
from tests.support.waiting import run_others

from cogwork.core.shield import await_shielded


async def test_await_shielded_returns_the_result_or_raises() -> None:
    assert await await_shielded(asyncio.to_thread(lambda: "done")) == "done"
    with pytest.raises(ZeroDivisionError):
        await await_shielded(asyncio.to_thread(lambda: 1 / 0))


@pytest.mark.parametrize("fails", [False, True])
async def test_cancelled_waiter_waits_until_the_work_ends(fails: bool) -> None:
    release, ended = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await release.wait()
        ended.set()
        if fails:
            raise ValueError("it went wrong in the end")

    waiting = asyncio.ensure_future(await_shielded(work()))
    for _ in range(3):
        await run_others()
        waiting.cancel()
    await run_others()
    assert not waiting.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
