"""A gRPC server that lasts: when grpc.aio's gives up, another one takes its place.

A single request is enough for that: if its path is no UTF-8, grpc.aio ends its main loop, and
nobody is served any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

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
        self._servers: list[grpc.aio.Server] = []
        """Those that gave up and still have calls, and at the end the one that serves."""
        self._watching: asyncio.Task[None] | None = None
        self._finishing: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._servers.append(await self._started())
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self, grace: float) -> None:
        """The calls under way get so many seconds to end."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait({self._watching})
        await asyncio.gather(*(server.stop(grace) for server in self._servers))
        await asyncio.gather(*self._finishing)

    async def _watch(self) -> None:
        while True:
            server = self._servers[-1]
            try:
                await server.wait_for_termination(_LOOK)
            except Exception as error:
                _log.error("gRPC gave up, and is started again: %s", error)
                await self._replace(server)

    async def _replace(self, old: grpc.aio.Server) -> None:
        try:
            self._servers.append(await self._started())
        except Exception as error:
            _log.error("gRPC cannot be started: %s; trying again", error)
            await asyncio.sleep(_LOOK)
            return
        finishing = asyncio.get_running_loop().create_task(self._finish(old))
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)

    async def _finish(self, old: grpc.aio.Server) -> None:
        await old.stop(_FINISH)
        self._servers.remove(old)
