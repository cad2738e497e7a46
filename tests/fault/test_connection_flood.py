"""New clients are served despite more idle connections than the limit allows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from hyperframe.frame import SettingsFrame
from tests.support.machine.running import http_get
from tests.support.machine.watched import WatchedServer, run_watched
from tests.support.network import http2_frames as frames
from tests.support.network.http2_client import connected
from tests.support.sizes import limit, size
from tests.support.waiting import wait_until

# A newcomer waits as long as this computer takes for 1,300 connections.
pytestmark = [pytest.mark.alone, pytest.mark.asyncio(loop_scope="module")]

CONNECTIONS = size(ci=1300, full=4000)
LIMIT = 1024
NEWCOMER = size(ci=5, full=1)
"""Seconds within which a newcomer is served: 1 is promised, which a slow computer cannot keep while
1,300 connections arrive at once."""
ASK = "/viam.robot.v1.RobotService/ResourceNames"
PICTURE = "/viam.component.camera.v1.CameraService/GetImages"
MOST_GROWTH = 100.0
"""MiB that the server may grow; gRPC keeps some for each connection."""

SLOW = {
    "silent": b"",
    "slow heads": b"GET / HTTP/1.1\r\nHost: localhost\r\n",
    "slow bodies": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
    "idle HTTP/2": frames.opening(),
    "headers alone": frames.opening() + frames.headers(1, ASK),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path_factory.mktemp("server"), CAMERA) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(watched: WatchedServer) -> WatchedServer:
    """A server that is calm and without connections, whatever was done to it before."""
    await watched.wait_until_calm()
    await wait_until(lambda: watched.descriptors() < LIMIT // 4)
    return watched


CAMERA = {"components": [{"name": "cam", "api": "rdk:component:camera", "model": "fake"}]}


@contextlib.asynccontextmanager
async def open_connections(
    port: int, first: bytes, count: int
) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Open connections that send their first bytes and read nothing."""
    writers: list[asyncio.StreamWriter] = []
    try:
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(first)
            writers.append(writer)
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def measure_new_client(port: int) -> float:
    """Return the seconds until one more client gets its first answers, over gRPC and HTTP."""
    began = time.monotonic()
    async with asyncio.timeout(60), connected(port) as client:
        assert (await client.call(ASK, b"")).status == 0
    assert (await http_get("localhost", port, "/restart_status"))[0] == 200
    return time.monotonic() - began


@pytest.mark.parametrize("first", SLOW.values(), ids=SLOW)
async def test_new_clients_are_served_during_a_connection_flood(
    server: WatchedServer, first: bytes
) -> None:
    port = server.server.port
    await measure_new_client(port)
    before = server.descriptors()
    took: list[float] = []

    async def flood() -> None:
        async with open_connections(port, first, CONNECTIONS):
            took[:] = [await measure_new_client(port) for _ in range(5)]
            held = server.descriptors() - before
            print(f"  {held} descriptors, newcomers {max(took):.2f} s")
            # A connection takes three descriptors, or one as long as its protocol is not known.
            assert held <= 3 * LIMIT + 100
            if not first:
                assert held <= LIMIT + 100
        await wait_until(lambda: server.descriptors() <= before + 100)

    phase = await server.attack(f"{CONNECTIONS} connections", flood)
    # A newcomer waits behind the connections that were made before it.
    assert max(took) < NEWCOMER * max(1, CONNECTIONS / 2000) + server_lag(phase.late)
    assert phase.bystander.failed == 0
    assert phase.growth < MOST_GROWTH


def server_lag(late: float) -> float:
    """Return the seconds that a busy computer adds to every iteration of the loop."""
    return 4 * late / 1000


async def test_streams_without_a_request_are_bounded(server: WatchedServer) -> None:
    flood = frames.opening() + b"".join(frames.headers(1 + 2 * i, PICTURE) for i in range(1000))

    async def open_streams() -> None:
        before = await server.size()
        async with open_connections(server.server.port, flood, size(ci=20, full=100)):
            assert await measure_new_client(server.server.port) < limit(10)
            assert await server.size() - before < MOST_GROWTH

    phase = await server.attack("idle streams", open_streams)
    assert phase.bystander.failed == 0


async def test_unread_replies_are_bounded(server: WatchedServer) -> None:
    request = b"\x0a\x03cam"
    closed_window = frames.PREFACE + frames.settings({SettingsFrame.INITIAL_WINDOW_SIZE: 0})
    asked = b"".join(frames.call(1 + 2 * i, PICTURE, request) for i in range(500))
    flood = closed_window + asked

    async def read_nothing() -> None:
        before = await server.size()
        async with open_connections(server.server.port, flood, size(ci=10, full=40)):
            for _ in range(3):
                assert await measure_new_client(server.server.port) < limit(10)
            assert await server.size() - before < 2 * MOST_GROWTH

    phase = await server.attack("pictures that nobody reads", read_nothing)
    assert phase.bystander.failed == 0
