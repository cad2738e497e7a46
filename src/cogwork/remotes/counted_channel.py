"""A channel that counts its calls, so that it can be closed after the last call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio


class CountedChannel:
    """A connected channel that counts its calls.

    The count replaces the grace period of grpc.aio's `close`: that period would go on after the
    last call has ended.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel
        self._unfinished = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def unary_unary(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        return self._count(self._channel.unary_unary(path, *coding, **named_coding))

    def unary_stream(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        return self._count(self._channel.unary_stream(path, *coding, **named_coding))

    def stream_stream(self, path: str, /, *coding: Any, **named_coding: Any) -> Any:
        return self._count(self._channel.stream_stream(path, *coding, **named_coding))

    async def wait_until_lost(self) -> None:
        state = self._channel.get_state()
        while state is grpc.ChannelConnectivity.READY:
            await self._channel.wait_for_state_change(state)
            state = self._channel.get_state()

    async def close_after_calls(self) -> None:
        await self._is_idle.wait()
        await self.aclose()

    async def aclose(self) -> None:
        """Close the channel, and end its calls."""
        await self._channel.close(None)

    def _count(self, start_call: Any) -> Callable[..., Any]:
        def start(*request: Any, **options: Any) -> Any:
            call = start_call(*request, **options)
            self._unfinished += 1
            self._is_idle.clear()
            call.add_done_callback(self._finish)
            return call

        return start

    def _finish(self, call: object) -> None:
        del call
        self._unfinished -= 1
        if self._unfinished == 0:
            self._is_idle.set()
