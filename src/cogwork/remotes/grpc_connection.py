"""A gRPC connection to another machine, whose channels can be replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import grpc.aio

from cogwork.remotes.counted_channel import CountedChannel
from cogwork.wire.clients.channel import ForwardChannel
from cogwork.wire.clients.metadata_channel import Pairs

_MAX_CLOSING: Final = 8
"""Maximum number of replaced channels that still have active calls."""


class GrpcConnection:
    """A connection with one channel for the session, and another channel for other calls.

    On a slow connection, images would delay heartbeats for seconds.
    """

    def __init__(
        self,
        control: grpc.aio.Channel,
        login: Pairs,
        open_channel: Callable[[], Awaitable[grpc.aio.Channel]],
        *,
        is_open: bool = False,
    ) -> None:
        self.login = login
        self.is_open = is_open
        """Whether the other machine requires no login although one is configured."""
        self._open_channel = open_channel
        self._control = CountedChannel(control)
        self._calls: CountedChannel | None = None
        self._lost = asyncio.Event()
        self._watching = asyncio.ensure_future(self._watch(self._control))
        self._closing: dict[CountedChannel, asyncio.Task[None]] = {}
        """Replaced channels with active calls."""

    @property
    def control(self) -> ForwardChannel:
        return self._control

    @property
    def calls(self) -> ForwardChannel:
        return self._control if self._calls is None else self._calls

    async def wait_until_lost(self) -> None:
        await self._lost.wait()

    async def renew(self) -> None:
        former, self._control = self._control, CountedChannel(await self._open_channel())
        self._watching.cancel()
        self._watching = asyncio.ensure_future(self._watch(self._control))
        self._close_later(former)
        await self.open_calls()

    async def open_calls(self) -> None:
        """Open a new channel for further calls, unless too many replaced channels are in use.

        Active calls stay on their channel, however long they take: moves and streams may take
        hours. Raise RemoteUnavailable.
        """
        if len(self._closing) >= _MAX_CLOSING:
            return
        former, self._calls = self._calls, CountedChannel(await self._open_channel())
        if former is not None:
            self._close_later(former)

    async def aclose(self) -> None:
        tasks = [self._watching, *self._closing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for channel in (self._control, self._calls, *self._closing):
            if channel is not None:
                await channel.aclose()

    async def _watch(self, control: CountedChannel) -> None:
        await control.wait_until_lost()
        self._lost.set()

    def _close_later(self, channel: CountedChannel) -> None:
        self._closing[channel] = asyncio.ensure_future(self._close_after_calls(channel))

    async def _close_after_calls(self, channel: CountedChannel) -> None:
        await channel.close_after_calls()
        del self._closing[channel]
