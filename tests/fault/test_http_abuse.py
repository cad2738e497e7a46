"""Clients that wear the server out over HTTP/1.1. Callers of the machine hardly notice."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.fault.watched import FAKES, LONGEST_TURN, Watched, watched
from tests.running import Config
from tests.sizes import size

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
async def abused(directory: Path, config: Config = FAKES) -> AsyncIterator[Watched]:
    """A server that has imported what it needs for HTTP."""
    async with watched(directory, config) as server:
        for path in ("/", "/status.json", "/logs.jsonl", "/history.json"):
            assert (await server.server.get(path))[0] == 200
        yield server


async def attacked(server: Watched, name: str, attack: Callable[[], Awaitable[None]]) -> None:
    phase = await server.attack(name, attack)
    assert phase.bystander.failures == []
    assert phase.busy < LONGEST_TURN
    assert (await server.server.get("/status.json"))[0] == 200


def request(port: int, path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()


async def ask_again_and_again(port: int, path: str, until: float) -> int:
    """Return how many answers came."""
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
    answers = await asyncio.gather(
        *(ask_again_and_again(port, path, until) for _ in range(CLIENTS))
    )
    assert min(answers) > 0
    print(f"{sum(answers)} answers")


async def leave_unread(server: Watched) -> None:
    """Ask for large answers, and take none of them."""
    port, before = server.server.port, await server.size()
    with contextlib.ExitStack() as stack:
        lazy = [stack.enter_context(socket.socket()) for _ in range(size(ci=200, full=800))]
        for each in lazy:
            # So that the answers stay with the server.
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


async def test_a_large_machine_that_everybody_looks_at(tmp_path: Path) -> None:
    async with abused(tmp_path, MANY) as server:
        port = server.server.port
        await server.idle()
        for path in ("/status.json", "/"):
            await attacked(server, f"{CLIENTS} clients loop {path}", partial(loop_on, port, path))


async def test_answers_that_are_not_read(tmp_path: Path) -> None:
    async with abused(tmp_path, MANY) as server:
        await attacked(server, "answers that are not read", partial(leave_unread, server))


async def test_a_crowd_that_follows_the_log(tmp_path: Path) -> None:
    async with abused(tmp_path) as server:
        attack = partial(follow_the_log, server.server.port)
        await attacked(server, "followers of the log", attack)
