"""Clients that abuse HTTP/1.1: other clients hardly notice."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.machine.running import Config
from tests.support.machine.watched import FAKES, LONGEST_TURN, WatchedServer, run_watched
from tests.support.sizes import size

pytestmark = pytest.mark.alone

CLIENTS = 6
SECONDS = size(ci=2, full=10)
"""How long each attack lasts."""
MOST_GROWTH = 50.0
"""MiB."""
MANY: Config = {
    "components": [
        {"name": f"s{number}", "api": "rdk:component:sensor", "model": "fake"}
        for number in range(2000)
    ]
}


@contextlib.asynccontextmanager
async def start_http_server(
    directory: Path, config: Config = FAKES
) -> AsyncIterator[WatchedServer]:
    """Start a server that has imported what it needs for HTTP."""
    async with run_watched(directory, config) as server:
        for path in ("/status", "/status.json", "/logs.jsonl", "/history.json"):
            assert (await server.server.get(path))[0] == 200
        yield server


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
        await asyncio.sleep(SECONDS)  # for them to be answered
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
        await asyncio.sleep(SECONDS)  # they are a burden while they stay
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


async def test_status_requests_in_a_loop_do_not_affect_other_clients(tmp_path: Path) -> None:
    async with start_http_server(tmp_path, MANY) as server:
        port = server.server.port
        await server.measure_idle()
        for path in ("/status.json", "/status"):
            await run_attack(server, f"{CLIENTS} clients loop {path}", partial(loop_on, port, path))


async def test_unread_answers_take_bounded_memory(tmp_path: Path) -> None:
    async with start_http_server(tmp_path, MANY) as server:
        await run_attack(server, "answers that are not read", partial(leave_unread, server))


async def test_number_of_log_followers_is_limited(tmp_path: Path) -> None:
    async with start_http_server(tmp_path) as server:
        attack = partial(follow_the_log, server.server.port)
        await run_attack(server, "followers of the log", attack)
