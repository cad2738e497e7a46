"""Channels of a connection that are replaced, and closed after their last call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import grpc.aio
import pytest
from tests.support.waiting import run_others

from cogwork.remotes.errors import RemoteUnavailable
from cogwork.remotes.grpc_connection import GrpcConnection

READY, LOST = grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.IDLE
MAX_CLOSING = 8


class Call:
    def __init__(self) -> None:
        self._callbacks: list[Any] = []

    def add_done_callback(self, callback: Any) -> None:
        self._callbacks.append(callback)

    async def finish(self) -> None:
        for each in self._callbacks:
            each(self)
        await run_others(3)


class Channel:
    def __init__(self) -> None:
        self.state = READY
        self.is_closed = False
        self.started: list[str] = []
        self._changed = asyncio.Event()

    def unary_unary(self, path: str, *_: Any, **__: Any) -> Any:
        def start(*_: Any, **__: Any) -> Call:
            self.started.append(path)
            return Call()

        return start

    unary_stream = stream_stream = unary_unary

    def get_state(self) -> grpc.ChannelConnectivity:
        return self.state

    async def wait_for_state_change(self, state: grpc.ChannelConnectivity) -> None:
        while self.state is state:
            await self._changed.wait()

    async def lose(self) -> None:
        self.state = LOST
        self._changed.set()
        await run_others(4)

    async def close(self, grace: float | None) -> None:
        assert grace is None
        self.is_closed = True


class Site:
    def __init__(self) -> None:
        self.channels: list[Channel] = []
        self.is_away = False
        control = self._make()
        login = (("authorization", "x"),)
        self.connection = GrpcConnection(cast("grpc.aio.Channel", control), login, self._open)

    def _make(self) -> Channel:
        self.channels.append(Channel())
        return self.channels[-1]

    async def _open(self) -> grpc.aio.Channel:
        if self.is_away:
            raise RemoteUnavailable("it is away")
        return cast("grpc.aio.Channel", self._make())

    async def is_lost(self) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await self.connection.wait_until_lost()
                return True
        return False

    @property
    def closed(self) -> list[bool]:
        return [each.is_closed for each in self.channels]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site()
    yield made
    await made.connection.aclose()
    assert all(made.closed)


async def test_calls_get_a_channel_of_their_own(site: Site) -> None:
    assert site.connection.calls is site.connection.control
    await site.connection.open_calls()
    assert site.connection.calls is not site.connection.control
    site.connection.calls.unary_unary("a")()
    site.connection.calls.unary_stream("b")()
    site.connection.calls.stream_stream("c")()
    site.connection.control.unary_unary("d")()
    assert [each.started for each in site.channels] == [["d"], ["a", "b", "c"]]


async def test_loss_of_the_control_channel_loses_the_connection(site: Site) -> None:
    await site.connection.open_calls()
    await site.channels[1].lose()
    assert not await site.is_lost()
    await site.channels[0].lose()
    await asyncio.wait_for(site.connection.wait_until_lost(), 5)


async def test_former_channels_carry_their_calls_to_the_end(site: Site) -> None:
    await site.connection.open_calls()
    move = site.connection.calls.unary_unary("move")()
    other = site.connection.calls.unary_unary("other")()
    await site.connection.renew()
    await run_others(3)
    assert site.closed == [True, False, False, False]
    site.connection.calls.unary_unary("next")()
    assert site.channels[3].started == ["next"]
    await other.finish()
    assert not site.channels[1].is_closed
    await move.finish()
    assert site.channels[1].is_closed


async def test_loss_of_a_former_channel_is_none(site: Site) -> None:
    await site.connection.renew()
    await site.channels[0].lose()
    assert not await site.is_lost()
    await site.channels[1].lose()
    await asyncio.wait_for(site.connection.wait_until_lost(), 5)


async def test_connection_that_cannot_be_renewed_stays(site: Site) -> None:
    control = site.connection.control
    site.is_away = True
    with pytest.raises(RemoteUnavailable):
        await site.connection.renew()
    assert site.connection.control is control
    assert site.closed == [False]
    await site.channels[0].lose()
    await asyncio.wait_for(site.connection.wait_until_lost(), 5)


async def test_number_of_former_channels_is_limited(site: Site) -> None:
    for _ in range(MAX_CLOSING + 5):
        await site.connection.open_calls()
        site.connection.calls.unary_unary("forever")()
    assert len(site.channels) == 1 + 1 + MAX_CLOSING


async def test_former_channels_whose_calls_ended_make_room_for_others(site: Site) -> None:
    for _ in range(MAX_CLOSING + 5):
        await site.connection.open_calls()
        call = site.connection.calls.unary_unary("short")()
        await site.connection.open_calls()
        await call.finish()
    assert len(site.channels) == 1 + 2 * (MAX_CLOSING + 5)
