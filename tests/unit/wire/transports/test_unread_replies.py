from __future__ import annotations

import asyncio

import pytest
from tests.support.waiting import run_others

from cogwork.wire.transports.unread_replies import RepliesNotRead, UnreadReplies


def make_unread_replies(timeout: float = 20.0) -> UnreadReplies:
    return UnreadReplies(total=100, per_client=80, slack=10, timeout=timeout, max_waiting=2)


def test_client_that_reads_is_never_behind() -> None:
    unread = make_unread_replies()
    for _ in range(100):
        unread.add("a", 50)
        assert not unread.is_behind("a")
        unread.remove("a", 50)
    assert unread.is_within_slack


def test_client_with_its_share_unread_is_behind() -> None:
    unread = make_unread_replies()
    unread.add("a", 80)
    assert unread.is_behind("a")
    assert not unread.is_behind("b")


def test_share_of_a_client_shrinks_when_the_total_is_reached() -> None:
    unread = make_unread_replies()
    unread.add("a", 79)
    unread.add("b", 21)
    assert unread.is_behind("b")
    assert not unread.is_behind("c")
    unread.add("c", 9)
    assert not unread.is_behind("c")


async def test_call_waits_until_its_client_has_read() -> None:
    unread = make_unread_replies()
    unread.add("a", 80)
    waiting = asyncio.ensure_future(unread.wait_until_read("a"))
    await run_others()
    unread.add("b", 5)
    unread.remove("b", 5)
    await run_others()
    assert not waiting.done()
    unread.remove("a", 80)
    await asyncio.wait_for(waiting, 20)


async def test_waiting_for_a_reader_times_out() -> None:
    unread = make_unread_replies(timeout=0.01)
    unread.add("a", 80)
    with pytest.raises(RepliesNotRead, match="80 bytes of replies are unread"):
        await unread.wait_until_read("a")


async def test_number_of_waiting_calls_is_limited() -> None:
    unread = make_unread_replies()
    unread.add("a", 80)
    waiting = [asyncio.ensure_future(unread.wait_until_read("a")) for _ in range(2)]
    await run_others()
    with pytest.raises(RepliesNotRead):
        await unread.wait_until_read("a")
    unread.remove("a", 80)
    await asyncio.wait_for(asyncio.gather(*waiting), 20)
