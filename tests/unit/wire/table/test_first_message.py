from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from cogwork.core.errors import InvalidRequest
from cogwork.wire.table import first_message
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Stream


class FakeStream:
    def __init__(self, message: Any) -> None:
        self._message = message

    async def recv_message(self) -> Any:
        if self._message is Ellipsis:
            await asyncio.Event().wait()
        return self._message


async def test_first_message_is_returned() -> None:
    assert await recv_first_message(cast("Stream", FakeStream("hello")), "/a.B/C") == "hello"


@pytest.mark.parametrize(
    ("message", "words"),
    [(None, "/a.B/C ended before its first message"), (..., "/a.B/C received no message within")],
    ids=["none", "never"],
)
async def test_missing_first_message_raises(
    message: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_message, "FIRST_MESSAGE_TIMEOUT", 0.01)
    with pytest.raises(InvalidRequest, match=words):
        await recv_first_message(cast("Stream", FakeStream(message)), "/a.B/C")
