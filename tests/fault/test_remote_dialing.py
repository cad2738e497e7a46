"""Connecting to real sockets that do not always answer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from cogwork.core.clock import SystemClock
from cogwork.remotes.dialing import Destination, dial
from cogwork.remotes.errors import RemoteUnavailable


class Gate:
    """Forwards connections to a server, except for the first ones, which it never answers."""

    def __init__(self, silent: int, target: int) -> None:
        self.connections = 0
        self._silent = silent
        self._target = target

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            if self.connections <= self._silent:
                await reader.read(-1)
            else:
                await self._forward(reader, writer)
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        copies = [
            asyncio.ensure_future(_copy(reader, back)),
            asyncio.ensure_future(_copy(there, writer)),
        ]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        for each in copies:
            each.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        back.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


@contextlib.asynccontextmanager
async def run_gate(silent: int) -> AsyncIterator[tuple[Gate, Destination]]:
    server = grpc.aio.server()
    target = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    gate = Gate(silent, target)
    listener = await asyncio.start_server(gate.handle, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    to = Destination(f"127.0.0.1:{port}", None, insecure=True, allow_plaintext=False)
    try:
        yield gate, to
    finally:
        listener.close()
        await listener.wait_closed()
        await server.stop(None)


async def test_attempt_that_is_not_answered_is_overtaken_by_the_next_one() -> None:
    async with run_gate(silent=1) as (gate, to):
        began = time.monotonic()
        connection = await dial(to, SystemClock())
        assert time.monotonic() - began < 4
        assert connection.control.get_state() is grpc.ChannelConnectivity.READY
        assert gate.connections >= 2
        await connection.aclose()


async def test_calls_get_a_connection_of_their_own() -> None:
    async with run_gate(silent=0) as (gate, to):
        connection = await dial(to, SystemClock())
        await connection.renew_calls()
        assert connection.calls is not connection.control
        assert gate.connections == 2
        await connection.aclose()


async def test_machine_that_never_answers_is_explained_and_gets_few_attempts() -> None:
    async with run_gate(silent=100) as (gate, to):
        with pytest.raises(RemoteUnavailable, match="did not answer within 5 s"):
            await dial(to, SystemClock())
        assert 2 <= gate.connections <= 6


async def test_refused_connection_is_explained_at_once() -> None:
    async with run_gate(silent=0) as (_, to):
        pass
    began = time.monotonic()
    with pytest.raises(RemoteUnavailable, match="Connection refused"):
        await dial(to, SystemClock())
    assert time.monotonic() - began < 4
