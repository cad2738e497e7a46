"""Clients that abuse HTTP/2 within its rules: the server survives and serves other clients."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from hpack import Encoder
from hyperframe.frame import PriorityFrame, SettingsFrame
from tests.support.machine.watched import WatchedServer, run_watched
from tests.support.network import http2_frames as frames
from tests.support.network.http2_client import connected
from tests.support.sizes import FULL, size
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402

pytestmark = pytest.mark.alone

ASK = "/viam.robot.v1.RobotService/ResourceNames"
ECHO = "/viam.component.generic.v1.GenericService/DoCommand"
SECONDS = 10.0 if FULL else 0.4
"""How long a flood lasts."""
MOST_KEPT = 100.0
"""MiB that it may have grown when a flood is over: gRPC keeps buffers for the next."""
MOST_GROWTH = 50.0
"""MiB that it may have grown when all of them are over."""
LONGEST_WAIT = 1000.0
"""Milliseconds for 99 of a hundred calls of the bystander: the SDK's clients then give up."""

Abuse = Callable[[int], Awaitable[str]]
"""Returns what came of it."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path) as server:
        yield server


class Connection:
    """Reads and discards what it receives, unless told not to read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._reading: asyncio.Task[None] | None = None
        self.received = 0

    def read(self) -> None:
        self._reading = asyncio.ensure_future(self._read())

    @property
    def is_closed(self) -> bool:
        return self._reading is not None and self._reading.done()

    async def send(self, data: bytes) -> None:
        """Send the data; raise ConnectionError when the server has closed the connection."""
        if self.is_closed:
            raise ConnectionResetError
        self._writer.write(data)
        await self._writer.drain()

    async def wait_closed(self) -> None:
        assert self._reading is not None
        await asyncio.wait({self._reading})

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := await self._reader.read(1 << 16):
                self.received += len(data)


@contextlib.asynccontextmanager
async def connect_raw(
    port: int, opening: bytes = b"", *, reads: bool = True
) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    connection = Connection(reader, writer)
    if reads:
        connection.read()
    try:
        await connection.send(opening)
        yield connection
    finally:
        await connection.aclose()


async def flood(
    port: int,
    each: Callable[[], Iterator[bytes]],
    opening: bytes = frames.opening(1 << 20),
    *,
    reads: bool = True,
) -> str:
    """Send the same data repeatedly, on new connections if the server closes the old ones."""
    sent, connections, until = 0, 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        connections += 1
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with connect_raw(port, opening, reads=reads) as connection:
                for data in each():
                    if time.monotonic() >= until:
                        break
                    async with asyncio.timeout(max(0.01, until - time.monotonic())):
                        await connection.send(data)
                    sent += len(data)
    return f"{sent / 1e6:.1f} MB on {connections} connections"


async def rapid_reset(port: int) -> str:
    def each() -> Iterator[bytes]:
        for first in range(1, 1 << 24, 200):
            yield b"".join(
                frames.headers(stream, ASK) + frames.reset(stream)
                for stream in range(first, first + 200, 2)
            )

    return await flood(port, each)


async def rapid_reset_of_whole_calls(port: int) -> str:
    def each() -> Iterator[bytes]:
        for first in range(1, 1 << 24, 40):
            yield b"".join(
                frames.call(stream, ASK) + frames.reset(stream)
                for stream in range(first, first + 40, 2)
            )

    return await flood(port, each)


async def continuation_flood(port: int) -> str:
    block = bytes(Encoder().encode([("x-filler", "y" * 8000)]))

    def each() -> Iterator[bytes]:
        yield frames.headers(1, ASK, more=True)
        while True:
            yield frames.continuation(1, block)

    return await flood(port, each)


async def empty_continuation_flood(port: int) -> str:
    def each() -> Iterator[bytes]:
        yield frames.headers(1, ASK, more=True)
        while True:
            yield frames.continuation(1, b"") * 1000

    return await flood(port, each)


def repeat(data: bytes) -> Callable[[], Iterator[bytes]]:
    def each() -> Iterator[bytes]:
        while True:
            yield data

    return each


async def ping_flood(port: int) -> str:
    return await flood(port, repeat(frames.ping() * 1000))


async def ping_flood_unread(port: int) -> str:
    """Every ping wants an answer, and the client reads none."""
    return await flood(port, repeat(frames.ping() * 1000), reads=False)


async def settings_flood(port: int) -> str:
    changing = b"".join(
        frames.settings({SettingsFrame.INITIAL_WINDOW_SIZE: value}) for value in range(1000)
    )
    return await flood(port, repeat(changing))


async def settings_flood_unread(port: int) -> str:
    return await flood(port, repeat(frames.settings() * 1000), reads=False)


async def priority_flood(port: int) -> str:
    frame = PriorityFrame(1, depends_on=3, stream_weight=5).serialize()
    return await flood(port, repeat(frame * 1000))


async def empty_data_flood(port: int) -> str:
    def each() -> Iterator[bytes]:
        yield frames.headers(1, ECHO)
        while True:
            yield frames.data(1, b"", end=False) * 1000

    return await flood(port, each)


async def header_bomb(port: int) -> str:
    """Store a header of 4 kB in the table, and refer to it thousands of times by one byte."""
    large = b"\x40\x01x\x7f\xa1\x1e" + b"y" * 4000
    block = frames.encoded(ASK) + large + b"\xbe" * 10_000

    def each() -> Iterator[bytes]:
        for stream in range(1, 1 << 24, 2):
            yield frames.block(stream, block)

    return await flood(port, each)


async def huge_headers(port: int) -> str:
    def each() -> Iterator[bytes]:
        for stream in range(1, 1 << 24, 2):
            besides = [(f"x-{number}", "y" * 500) for number in range(30)]
            yield frames.headers(stream, ASK, besides=besides, end=True)

    return await flood(port, each)


async def zero_window(port: int) -> str:
    """Request large replies, and never read them."""
    request = DoCommandRequest(name="g")
    request.command["filler"] = "x" * 14_000
    body = request.SerializeToString()
    opening = frames.PREFACE + frames.settings({SettingsFrame.INITIAL_WINDOW_SIZE: 0})
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(4):
            connection = await stack.enter_async_context(connect_raw(port, opening))
            for stream in range(1, 200, 2):
                await connection.send(frames.call(stream, ECHO, body))
        await pass_time(SECONDS)  # nobody will tell
    return "4 × 100 replies of 14 kB asked for"


async def slow_bodies(port: int) -> str:
    count = size(ci=50, full=500)
    async with contextlib.AsyncExitStack() as stack:
        connections = [
            await stack.enter_async_context(
                connect_raw(port, frames.opening() + frames.headers(1, ECHO))
            )
            for _ in range(count)
        ]
        for byte in frames.message(b"x" * 1000)[: round(5 * SECONDS)]:
            for connection in connections:
                await connection.send(frames.data(1, bytes([byte]), end=False))
            await pass_time(0.2)  # slowness is the point
    return f"{count} calls"


async def idle_connections(port: int) -> str:
    count = size(ci=500, full=4000)
    async with contextlib.AsyncExitStack() as stack:
        for number in range(count):
            await stack.enter_async_context(connect_raw(port))
            if number % 100 == 0:
                assert await is_served(port)
        assert await is_served(port)
    return f"{count} connections"


async def prefaces_only(port: int) -> str:
    count = size(ci=300, full=900)
    async with contextlib.AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(connect_raw(port, frames.PREFACE)) for _ in range(count)
        ]
        assert await is_served(port)
        if FULL:
            async with asyncio.timeout(30):
                for connection in opened:
                    await connection.wait_closed()
    return f"{count} connections"


async def opened_only(port: int) -> str:
    """Open real HTTP/2 connections that send no request."""
    count = size(ci=300, full=900)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(connect_raw(port, frames.opening()))
        assert await is_served(port)
    return f"{count} connections"


async def http1_flood(port: int) -> str:
    return await flood(
        port, repeat(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20), opening=b"", reads=True
    )


async def is_served(port: int) -> bool:
    async with asyncio.timeout(60), connected(port) as client:
        return (await client.call(ASK, b"")).status == 0


ABUSES: list[Abuse] = [
    ping_flood,
    ping_flood_unread,
    continuation_flood,
    empty_continuation_flood,
    settings_flood,
    settings_flood_unread,
    rapid_reset,
    rapid_reset_of_whole_calls,
    priority_flood,
    empty_data_flood,
    header_bomb,
    huge_headers,
    zero_window,
    slow_bodies,
    idle_connections,
    prefaces_only,
    opened_only,
    http1_flood,
]


@pytest.mark.timeout(size(ci=240, full=900))
async def test_server_survives_http2_abuse(server: WatchedServer) -> None:
    """The attacks run in turn on the same server, which must recover after each."""
    port = server.server.port
    await warm_up(port)
    faults: list[str] = []
    before = await server.size()
    for abuse in ABUSES:

        async def attack(abuse: Abuse = abuse) -> None:
            came_of_it = await abuse(port)
            calm = await server.wait_until_calm()
            print(f"  {came_of_it}, calm after {calm:.1f} s")

        phase = await server.attack(
            abuse.__name__, attack, longest_turn=math.inf, highest_p99=LONGEST_WAIT
        )
        if phase.bystander.failures:
            faults.append(f"{abuse.__name__}: the bystander was told {phase.bystander.failures}")
        if phase.bystander.p99 > LONGEST_WAIT:
            faults.append(f"{abuse.__name__}: the bystander waited {phase.bystander.p99:.0f} ms")
        if phase.growth > MOST_KEPT:
            faults.append(f"{abuse.__name__}: it grew by {phase.growth:.0f} MiB")
        assert await is_served(port), abuse.__name__
    growth = await server.size() - before
    print(f"grew by {growth:.1f} MiB in all")
    assert faults == []
    assert growth < MOST_GROWTH
    assert "Traceback" not in server.server.output


async def warm_up(port: int) -> None:
    """Call everything once: first imports and caches do not count as growth."""
    await request_page(port)
    async with connected(port) as client:
        for _ in range(50):
            await client.call(ASK, b"")
            await client.call(ECHO, DoCommandRequest(name="g").SerializeToString())


async def request_page(port: int) -> None:
    async with connect_raw(
        port, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    ) as connection:
        await connection.wait_closed()
        assert connection.received
