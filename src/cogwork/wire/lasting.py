"""A gRPC server that lasts: when grpc.aio's gives up, another one takes its place.

A single request is enough for that: if its path is no UTF-8, grpc.aio ends its main loop, and
nobody is served any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import grpc.aio

_LOOK = 0.25
"""Seconds within which it is noticed."""
_FINISH = 5.0
"""Seconds that the calls of one that gave up get to end."""

_log = logging.getLogger("rdk.networking")


class LastingServer:
    def __init__(self, started: Callable[[], Awaitable[grpc.aio.Server]]) -> None:
        """`started` makes one; it is called again when that has given up."""
        self._started = started
        self._server: grpc.aio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await self._started()
        self._own(self._watch())

    async def stop(self, grace: float) -> None:
        """The calls under way get so many seconds to end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(grace)

    async def _watch(self) -> None:
        while self._server is not None:
            try:
                await self._server.wait_for_termination(_LOOK)
            except Exception as error:
                _log.error("gRPC gave up, and is started again: %s", error)
                await self._replace(self._server)

    async def _replace(self, old: grpc.aio.Server) -> None:
        try:
            self._server = await self._started()
        except Exception as error:
            _log.error("gRPC cannot be started: %s; trying again", error)
            await asyncio.sleep(_LOOK)
        else:
            self._own(old.stop(_FINISH))

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
