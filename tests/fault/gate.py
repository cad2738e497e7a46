"""A TCP relay in front of a server, which leaves connections unanswered or ends them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator

from tests.support.sizes import limit


class Gate:
    """Forwards connections to a server, except for the first ones, which it never answers."""

    def __init__(self, target: int, silent: int) -> None:
        self.connections = 0
        self.port = 0
        self._target = target
        self._silent = silent
        self._open = 0
        self._changed = asyncio.Condition()
        self._writers: list[asyncio.StreamWriter] = []
        self._passes = asyncio.Event()
        """Set while the connections of now are forwarded."""
        self._passes.set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        await self._count(1)
        try:
            if self.connections <= self._silent:
                await reader.read(-1)
            else:
                await self._forward(reader, writer)
        finally:
            writer.close()
            await self._count(-1)

    def disconnect(self, number: int) -> None:
        """End a connection, counted from 0."""
        self._writers[number].transport.abort()

    @contextlib.contextmanager
    def stall(self) -> Iterator[None]:
        """Hold what the open connections send, but forward new ones."""
        stalled, self._passes = self._passes, asyncio.Event()
        self._passes.set()
        stalled.clear()
        try:
            yield
        finally:
            stalled.set()

    async def wait_until_open(self, connections: int) -> None:
        """Wait until so many connections are open."""
        async with asyncio.timeout(limit(5)), self._changed:
            await self._changed.wait_for(lambda: self._open == connections)

    async def _count(self, change: int) -> None:
        async with self._changed:
            self._open += change
            self._changed.notify_all()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passes = self._passes
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        copies = [
            asyncio.ensure_future(_copy(reader, back, passes)),
            asyncio.ensure_future(_copy(there, writer, passes)),
        ]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        back.close()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passes: asyncio.Event
) -> None:
    while data := await reader.read(65536):
        await passes.wait()
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def run_gate(target: int, silent: int = 0) -> AsyncIterator[Gate]:
    """`target` is the port of the server."""
    gate = Gate(target, silent)
    listener = await asyncio.start_server(gate.handle, "127.0.0.1", 0)
    gate.port = listener.sockets[0].getsockname()[1]
    try:
        yield gate
    finally:
        listener.close()
        await listener.wait_closed()
