from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.waiting import run_others, wait_until

from cogwork.wire.table import opening_message
from cogwork.wire.table.opening_message import opened_by_a_message


class Replies:
    """What a client receives."""

    peer = "ipv4:192.0.2.7:1"

    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send_initial_metadata(self, *, metadata: Any = None) -> None:
        self.sent.append(dict(metadata or {}))

    async def send_message(self, message: bytes, *, end: bool = False) -> None:
        await run_others()
        self.sent.append(message)


@pytest.fixture
def replies() -> Any:
    return Replies()


async def test_empty_message_follows_the_metadata_at_once(replies: Any) -> None:
    async with opened_by_a_message(replies) as stream:
        await stream.send_initial_metadata(metadata={"a": "b"})
        assert replies.sent == [{"a": "b"}, b""]
        await stream.send_message(b"tick")
        assert stream.peer == "ipv4:192.0.2.7:1"
    assert replies.sent[2:] == [b"tick"]


async def test_own_empty_message_is_dropped(replies: Any) -> None:
    async with opened_by_a_message(replies) as stream:
        for message in (b"", b"tick", b""):
            await stream.send_message(message)
    assert replies.sent == [b"", b"tick", b""]


async def test_stream_that_says_nothing_is_opened_after_a_moment(
    replies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_message, "OPENING_TIME", 0.01)
    async with opened_by_a_message(replies) as stream:
        await wait_until(lambda: replies.sent)
        await stream.send_initial_metadata(metadata={"late": "b"})
        await stream.send_message(b"tick")
    assert replies.sent == [b"", b"tick"]


async def test_messages_never_overtake_the_first(replies: Any) -> None:
    async with opened_by_a_message(replies) as stream:
        await asyncio.gather(stream.open_late(), stream.send_message(b"tick"))  # type: ignore[attr-defined]
    assert replies.sent == [b"", b"tick"]


async def test_stream_that_ends_is_not_opened_any_more(
    replies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening_message, "OPENING_TIME", 0.0)
    async with opened_by_a_message(replies):
        pass
    await run_others(3)
    assert replies.sent == []
