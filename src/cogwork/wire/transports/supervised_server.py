"""Supervises a gRPC server: when grpc.aio's server stops unexpectedly, another one is started.

A single request can stop the server: a path that is not UTF-8 ends its main loop. The relay blocks
such requests, but `network.grpc_address` has no relay in front of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import grpc.aio

_POLL_INTERVAL = 0.25
"""Seconds between two checks, and between a failed start and the next attempt."""
_FINISH_GRACE = 5.0
"""Seconds that the calls of a replaced server get to finish."""

_log = logging.getLogger("rdk.networking")


class SupervisedServer:
    def __init__(self, start_server: Callable[[], Awaitable[grpc.aio.Server]]) -> None:
        """`start_server` returns a started server. It is called again after that server stops."""
        self._start_server = start_server
        self._servers: list[grpc.aio.Server] = []
        """Replaced servers that still have calls, followed by the current server."""
        self._watch_task: asyncio.Task[None] | None = None
        self._finish_tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._servers.append(await self._start_server())
        self._watch_task = asyncio.get_running_loop().create_task(self._watch())

    async def stop(self, grace: float) -> None:
        """Stop all servers. Calls in flight get `grace` seconds to finish."""
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.wait({self._watch_task})
        await asyncio.gather(*(server.stop(grace) for server in self._servers))
        await asyncio.gather(*self._finish_tasks)

    async def _watch(self) -> None:
        while True:
            server = self._servers[-1]
            try:
                await server.wait_for_termination(_POLL_INTERVAL)
            except Exception as error:
                _log.error("the gRPC server stopped unexpectedly: %s; restarting it", error)
                await self._replace(server)

    async def _replace(self, old: grpc.aio.Server) -> None:
        try:
            self._servers.append(await self._start_server())
        except Exception as error:
            _log.error("cannot start the gRPC server: %s; retrying", error)
            await asyncio.sleep(_POLL_INTERVAL)
            return
        finishing = asyncio.get_running_loop().create_task(self._finish(old))
        self._finish_tasks.add(finishing)
        finishing.add_done_callback(self._finish_tasks.discard)

    async def _finish(self, old: grpc.aio.Server) -> None:
        await old.stop(_FINISH_GRACE)
        self._servers.remove(old)
