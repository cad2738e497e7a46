r"""Tunnels of the real executable carry every byte in both directions without piling up.

The client runs in a child process, with grpc or with the SDK's generated stub: the SDK has no
other client for tunnels.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.interop import tunnel_client
from tests.interop.tunnel_client import PIECE, Pattern, receive_all, send_all
from tests.support.machine.running import Server, run_server
from tests.support.sizes import size
from tests.support.waiting import pass_time, run_others

MEBIBYTE = 1 << 20
CARRIED = size(ci=64 * MEBIBYTE, full=1_000_000_000)
CARRIED_SLOWLY = size(ci=8 * MEBIBYTE, full=128 * MEBIBYTE)
"""By the SDK's own client, which is written in Python."""
LONGEST = 60.0 + CARRIED / 5e6
MOST_MEMORY = 64 * MEBIBYTE
"""That a server may take while one direction of a tunnel stands still and the other runs."""
MOST_UNDER_WAY = 32 * MEBIBYTE
"""In sockets and in flow control, of this computer and of three processes."""


class Destination:
    """The end of a tunnel: it sends a number of bytes, expects as many, and checks them."""

    def __init__(self, count: int) -> None:
        self.sent, self.heard = Pattern("down"), Pattern("up")
        self.reads = asyncio.Event()
        self.reads.set()
        self._count = count
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[asyncio.Future[None]]:
        """Serve one connection."""
        with self._listener:
            serving = asyncio.ensure_future(self._serve())
            try:
                yield serving
            finally:
                serving.cancel()
                await asyncio.gather(serving, return_exceptions=True)

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        connection, _ = await loop.sock_accept(self._listener)
        buffer = memoryview(bytearray(PIECE))

        async def receive() -> Any:
            return buffer[: await loop.sock_recv_into(connection, buffer)]

        async def send() -> None:
            await send_all(lambda data: loop.sock_sendall(connection, data), self.sent, self._count)
            connection.shutdown(socket.SHUT_WR)

        async def check_received() -> None:
            await self.reads.wait()
            await receive_all(receive, self.heard)

        with connection:
            connection.setblocking(False)
            await asyncio.gather(send(), check_received())


@contextlib.asynccontextmanager
async def start_client(
    how: str, server: int, destination: int, count: int
) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", tunnel_client.__file__),
        *(how, str(server), str(destination), str(count)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await run_others()


async def read_report(process: asyncio.subprocess.Process, *, go: bool = False) -> Any:
    async with asyncio.timeout(LONGEST):
        out, _ = await process.communicate(b"\n" if go else None)
    return json.loads(out)


def tunnel_config(*ports: int) -> dict[str, Any]:
    endpoints = [{"port": port, "connection_timeout": "5s"} for port in ports]
    return {"network": {"traffic_tunnel_endpoints": endpoints}}


async def transfer(how: str, server: Server, destination: Destination, count: int) -> Any:
    async with (
        destination.serving() as serving,
        start_client(how, server.port, destination.port, count) as process,
    ):
        told = await read_report(process)
        await asyncio.wait_for(serving, LONGEST)
    return told


@pytest.mark.timeout(4 * LONGEST)
async def test_tunnel_carries_every_byte_in_both_directions(tmp_path: Path) -> None:
    through, bare = Destination(CARRIED), Destination(CARRIED)
    async with run_server(tunnel_config(through.port), tmp_path) as server:
        told = await transfer("grpc", server, through, CARRIED)
        straight = await transfer("tcp", server, bare, CARRIED)
    assert (told["sent"], told["received"]) == (CARRIED, CARRIED)
    assert (through.sent.at, through.heard.at) == (CARRIED, CARRIED)
    rates = [2 * CARRIED / each["seconds"] / 1e6 for each in (told, straight)]
    print(
        f"{CARRIED / 1e6:.0f} MB each way: {rates[0]:.0f} MB/s through a tunnel, {rates[1]:.0f} "
        f"MB/s without, a ratio of {rates[0] / rates[1]:.3f}"
    )


@pytest.mark.timeout(4 * LONGEST)
async def test_tunnel_carries_every_byte_for_the_stub_of_the_sdk(tmp_path: Path) -> None:
    destination = Destination(CARRIED_SLOWLY)
    async with run_server(tunnel_config(destination.port), tmp_path) as server:
        told = await transfer("grpclib", server, destination, CARRIED_SLOWLY)
    assert (told.get("sent"), told.get("received")) == (CARRIED_SLOWLY, CARRIED_SLOWLY)
    assert destination.heard.at == CARRIED_SLOWLY


@pytest.mark.timeout(4 * LONGEST)
@pytest.mark.parametrize("stopped", ["the client", "the port"])
async def test_reader_that_stops_does_not_fill_the_memory(tmp_path: Path, stopped: str) -> None:
    destination = Destination(CARRIED)
    how = "grpc"
    if stopped == "the client":
        how = "grpc-held"
    else:
        destination.reads.clear()
    first = Destination(1)
    async with run_server(tunnel_config(destination.port, first.port), tmp_path) as server:
        await transfer("grpc", server, first, 1)
        process = psutil.Process(server.pid)
        before = process.memory_info().rss
        async with (
            destination.serving() as serving,
            start_client(how, server.port, destination.port, CARRIED) as peer,
        ):
            await wait_until_stalled(lambda: destination.sent.at + destination.heard.at)
            taken = process.memory_info().rss - before
            sent = destination.sent.at
            print(f"{taken / 1e6:.1f} MB while {stopped} does not read; {sent / 1e6:.1f} MB sent")
            destination.reads.set()
            told = await read_report(peer, go=stopped == "the client")
            await asyncio.wait_for(serving, LONGEST)
    assert (told["sent"], told["received"]) == (CARRIED, CARRIED)
    assert destination.heard.at == CARRIED
    assert taken < MOST_MEMORY
    assert stopped == "the port" or sent < MOST_UNDER_WAY


async def wait_until_stalled(moved: Callable[[], int]) -> None:
    """Wait until nothing moved for a second, after it has begun."""
    async with asyncio.timeout(LONGEST):
        before = -1
        while moved() == 0 or moved() != before:
            before = moved()
            await pass_time(1)


@pytest.mark.parametrize("how", ["grpc", "grpclib"])
async def test_unlisted_port_is_refused(tmp_path: Path, how: str) -> None:
    destination = Destination(1)
    async with (
        run_server(tunnel_config(22), tmp_path) as server,
        destination.serving() as serving,
        start_client(how, server.port, destination.port, 1) as process,
    ):
        told = await read_report(process)
        assert not serving.done()
    assert told == {
        "status": "NOT_FOUND",
        "words": f"tunnel not available at port {destination.port}: "
        "network.traffic_tunnel_endpoints has 22",
    }
