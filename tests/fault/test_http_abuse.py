"""Clients that abuse HTTP/1.1: other clients hardly notice."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

import pytest
import pytest_asyncio
from tests.support.machine.running import Config
from tests.support.machine.watched import LONGEST_TURN, WatchedServer, run_watched
from tests.support.sizes import size
from tests.support.waiting import pass_time

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIENTS = 6
SECONDS = size(ci=1, full=10)
"""How long each attack lasts."""
MOST_GROWTH = 50.0
"""MiB."""
MANY: Config = {
    "components": [
        {"name": f"s{number}", "api": "rdk:component:sensor", "model": "fake"}
        for number in range(2000)
    ]
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    """Start a server that has imported what it needs for HTTP."""
    async with run_watched(tmp_path_factory.mktemp("server"), MANY) as server:
        for path in ("/status", "/status.json", "/logs.jsonl", "/history.json"):
            assert (await server.server.get(path))[0] == 200
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(watched: WatchedServer) -> WatchedServer:
    """A server that is calm, whatever was done to it before."""
    await watched.wait_until_calm()
    return watched


async def run_attack(
    server: WatchedServer, name: str, attack: Callable[[], Awaitable[None]]
) -> None:
    phase = await server.attack(name, attack)
    assert phase.bystander.failures == []
    assert phase.busy < LONGEST_TURN
    assert (await server.server.get("/status.json"))[0] == 200


def request(port: int, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()


async def request_repeatedly(port: int, path: str, until: float) -> int:
    """Return the number of answers."""
    answers = 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        while time.monotonic() < until:
            writer.write(request(port, path))
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert head.startswith("http/1.1 200")
            length = re.search(r"content-length: (\d+)", head)
            if length is not None:
                await reader.readexactly(int(length[1]))
            else:
                await reader.readuntil(b"0\r\n\r\n")
            answers += 1
    finally:
        writer.close()
        await writer.wait_closed()
    return answers


async def loop_on(port: int, path: str) -> None:
    until = time.monotonic() + SECONDS
    answers = await asyncio.gather(*(request_repeatedly(port, path, until) for _ in range(CLIENTS)))
    assert min(answers) > 0
    print(f"{sum(answers)} answers")


async def leave_unread(server: WatchedServer) -> None:
    """Request large answers and read none of them."""
    port, before = server.server.port, await server.size()
    with contextlib.ExitStack() as stack:
        lazy = [stack.enter_context(socket.socket()) for _ in range(size(ci=200, full=800))]
        for each in lazy:
            # A small buffer keeps the answers in the server.
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.setblocking(False)
            await asyncio.get_running_loop().sock_connect(each, ("127.0.0.1", port))
            each.send(request(port, "/status.json") * 20)
        await pass_time(SECONDS)  # for them to be answered
        growth = await server.size() - before
    print(f"grew by {growth:.1f} MiB")
    assert growth < MOST_GROWTH


async def follow_the_log(port: int) -> None:
    statuses: list[bytes] = []
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(size(ci=200, full=900)):
            reader = await stack.enter_async_context(
                connected(port, request(port, "/logs.jsonl?follow&text=nothing"))
            )
            statuses.append((await reader.readline()).split()[1])
        await pass_time(SECONDS)  # they are a burden while they stay
    assert statuses.count(b"200") == 8
    assert set(statuses) == {b"200", b"503"}


@contextlib.asynccontextmanager
async def connected(port: int, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        yield reader
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.mark.parametrize("path", ["/status.json", "/status"])
async def test_status_requests_in_a_loop_do_not_affect_other_clients(
    server: WatchedServer, path: str
) -> None:
    attack = partial(loop_on, server.server.port, path)
    await run_attack(server, f"{CLIENTS} clients loop {path}", attack)


async def test_unread_answers_take_bounded_memory(server: WatchedServer) -> None:
    await run_attack(server, "answers that are not read", partial(leave_unread, server))


async def test_number_of_log_followers_is_limited(server: WatchedServer) -> None:
    attack = partial(follow_the_log, server.server.port)
    await run_attack(server, "followers of the log", attack)
