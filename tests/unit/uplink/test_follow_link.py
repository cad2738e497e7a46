"""Listening to a cloud: what it tells, silence, ends, and clouds that tell nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from tests.support.cloud.scripted_cloud import END, ScriptedCloud

from cogwork.core.clock import ManualClock
from cogwork.uplink.errors import CloudUnavailable, MethodMissing
from cogwork.uplink.follow_link import FollowLink, News

LONGEST_PAUSE = 10.0


def message(**fields: Any) -> Struct:
    made = Struct()
    made.update(fields)
    return made


class Listening:
    def __init__(self) -> None:
        self.clock, self.cloud = ManualClock(), ScriptedCloud()
        self.news: list[News] = []
        self.link = FollowLink(self.cloud.client, "part", self.clock, self.news.append)

    async def tell(self, what: Any) -> None:
        self.cloud.messages.put_nowait(what)
        await self.clock.settle()


@pytest.fixture
async def listening() -> AsyncIterator[Listening]:
    made = Listening()
    running = asyncio.create_task(made.link.run())
    await made.clock.settle()
    yield made
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_tells_what_has_changed(listening: Listening) -> None:
    (request,) = listening.cloud.requests
    assert (request["id"], request["time"]) == ("part", listening.clock.time())
    await listening.tell(message(config="7", access="a", secret="s", conflict="two"))
    await listening.tell(message(ended=["key", "other"]))
    assert listening.news == [
        News("7", "a", (), "s", "two"),
        News(ended=("key", "other")),
    ]


async def test_heartbeats_are_no_news(listening: Listening) -> None:
    before = listening.link.is_listening
    await listening.tell(message())
    assert (before, listening.link.is_listening) == (False, True)
    assert listening.news == []


@pytest.mark.parametrize("end", [END, CloudUnavailable("it is silent")])
async def test_listens_again_after_an_end(listening: Listening, end: Any) -> None:
    for streams in range(1, 6):
        assert listening.cloud.streams == streams
        await listening.tell(end)
        assert not listening.link.is_listening
        await listening.clock.advance(LONGEST_PAUSE)


async def test_pauses_become_longer_unless_a_stream_lasted(listening: Listening) -> None:
    for _ in range(8):
        await listening.tell(END)
        await listening.clock.advance(LONGEST_PAUSE)
    before = listening.cloud.streams
    await listening.tell(END)
    await listening.clock.advance(1)
    assert listening.cloud.streams == before
    await listening.clock.advance(60)  # this one lasts
    await listening.tell(END)
    await listening.clock.advance(1)
    assert listening.cloud.streams == before + 2


async def test_cloud_without_the_method_is_asked_rarely(listening: Listening) -> None:
    await listening.tell(MethodMissing("it has no such method"))
    await listening.clock.advance(599)
    assert listening.cloud.streams == 1
    await listening.clock.advance(1 + LONGEST_PAUSE)
    assert listening.cloud.streams == 2


async def test_listens_again_with_other_credentials(listening: Listening) -> None:
    await listening.tell(message(config="1"))
    listening.link.reconnect()
    await listening.clock.advance(LONGEST_PAUSE)
    assert listening.cloud.streams == 2
    assert len(listening.news) == 1
