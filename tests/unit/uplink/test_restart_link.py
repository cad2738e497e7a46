"""Restarts that someone asks for in the cloud."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from tests.support.cloud.scripted_cloud import ScriptedCloud
from viam.gen.app.v1.robot_pb2 import NeedsRestartResponse

from cogwork.core.clock import ManualClock
from cogwork.uplink.errors import CloudUnavailable
from cogwork.uplink.restart_link import RestartLink


class Asking:
    def __init__(self) -> None:
        self.clock, self.cloud = ManualClock(), ScriptedCloud()
        self.restarts: list[str] = []
        self.link = RestartLink(self.cloud.client, "part", self.clock, self.restarts.append)

    def answer(self, seconds: float, *, must_restart: bool = False) -> None:
        reply = NeedsRestartResponse(must_restart=must_restart)
        reply.restart_check_interval.FromMilliseconds(int(seconds * 1000))
        self.cloud.answer = reply

    async def count(self, seconds: float) -> int:
        """Return the number of questions in this time."""
        before = len(self.cloud.requests)
        await self.clock.advance(seconds)
        return len(self.cloud.requests) - before


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    made = Asking()
    running = asyncio.create_task(made.link.run())
    yield made
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_asks_as_often_as_the_cloud_wants(asking: Asking) -> None:
    asking.answer(10)
    assert await asking.count(5) == 1
    assert await asking.count(9.9) == 0
    assert await asking.count(0.2) == 1
    assert asking.cloud.requests[0].id == "part"
    assert asking.restarts == []


@pytest.mark.parametrize(("wanted", "used"), [(0.0, 1.0), (-5.0, 1.0), (1e6, 3600.0)])
async def test_interval_has_bounds(asking: Asking, wanted: float, used: float) -> None:
    asking.answer(wanted)
    await asking.count(5)
    assert await asking.count(used - 0.1) == 0
    assert await asking.count(0.2) == 1


async def test_restarts_once_for_each_answer_that_says_so(asking: Asking) -> None:
    asking.answer(10, must_restart=True)
    await asking.count(5)
    assert asking.restarts == ["someone asked for a restart in the cloud"]


async def test_hint_is_followed_at_once(asking: Asking) -> None:
    asking.answer(3600)
    await asking.count(5)
    asking.link.ask_soon()
    assert await asking.count(0) == 1


async def test_goes_on_while_the_cloud_is_away(asking: Asking) -> None:
    asking.cloud.answer = CloudUnavailable("it is away")
    assert await asking.count(60) == 12
    asking.answer(10, must_restart=True)
    await asking.count(5)
    assert len(asking.restarts) == 1
