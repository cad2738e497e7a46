"""`cogwork tunnel …` as a person runs it, against the real executable."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.commands import run_command, start_command
from tests.support.machine.running import DEADLINE, Server, run_server


async def serve_uppercase(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read everything, then reply in uppercase."""
    writer.write((await reader.read()).upper())
    await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@pytest.fixture
async def uppercase_port() -> AsyncIterator[int]:
    async with await asyncio.start_server(serve_uppercase, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def machine(tmp_path: Path, uppercase_port: int) -> AsyncIterator[Server]:
    endpoints: list[Any] = [{"port": uppercase_port, "connection_timeout": "2s"}, {"port": 9}]
    config = {"network": {"traffic_tunnel_endpoints": endpoints}}
    async with run_server(config, tmp_path) as server:
        await server.wait_for_status(state="running")
        yield server


def address_arguments(server: Server) -> tuple[str, str]:
    return "--address", f"localhost:{server.port}"


async def exchange(port: int, data: bytes) -> bytes:
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer


async def test_tunnel_forwards_connections_until_ctrl_c(
    machine: Server, uppercase_port: int
) -> None:
    async with start_command("tunnel", str(uppercase_port), *address_arguments(machine)) as process:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).decode()
        words = re.fullmatch(
            rf"forwarding localhost:(\d+) to port {uppercase_port} of the machine at localhost:"
            rf"{machine.port}; press Ctrl-C to stop\n",
            line,
        )
        assert words is not None, line
        port = int(words[1])
        assert port != uppercase_port, "that one is taken"
        large = b"x" * 3_000_000
        small, larger = await asyncio.gather(exchange(port, b"hello"), exchange(port, large))
        assert small == b"HELLO"
        assert larger == large.upper()
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert (process.returncode, err) == (130, b"")
    assert sorted(out.decode().splitlines()) == [
        "connection closed: 3000000 bytes sent, 3000000 received",
        "connection closed: 5 bytes sent, 5 received",
    ]


async def test_open_connection_ends_with_the_command(machine: Server, uppercase_port: int) -> None:
    async with start_command("tunnel", str(uppercase_port), *address_arguments(machine)) as process:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).decode()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", int(line.partition("localhost:")[2].split()[0])
        )
        writer.write(b"wait")
        process.send_signal(signal.SIGINT)
        _, err = await asyncio.wait_for(process.communicate(), DEADLINE)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    assert (process.returncode, err) == (130, b"")


async def test_unreachable_port_is_reported_for_each_connection(machine: Server) -> None:
    async with start_command("tunnel", "9", *address_arguments(machine)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).decode()
        with contextlib.suppress(ConnectionError):
            assert await exchange(int(line.partition("localhost:")[2].split()[0]), b"hello") == b""
        told = (await asyncio.wait_for(process.stderr.readline(), DEADLINE)).decode()
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), DEADLINE)
    assert told.startswith("UNAVAILABLE: port 9 of the machine cannot be reached: ")


async def test_tunnels_are_listed(machine: Server, uppercase_port: int) -> None:
    people = await run_command("tunnel", *address_arguments(machine))
    assert people == (
        0,
        f"{uppercase_port}  (connection timeout 2s)\n9  (connection timeout 10s)\n",
        "",
    )
    programs = await run_command("tunnel", "--json", *address_arguments(machine))
    assert json.loads(programs.out) == [
        {"port": uppercase_port, "connection_timeout": 2.0},
        {"port": 9, "connection_timeout": 10.0},
    ]


async def test_machine_without_tunnels_is_reported(tmp_path: Path) -> None:
    async with run_server({}, tmp_path) as server:
        none = await run_command("tunnel", *address_arguments(server))
        refused = await run_command("tunnel", "22", *address_arguments(server))
    assert (none.code, none.err) == (0, "")
    assert none.out.startswith("the machine has no tunnels; ")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("the machine has no tunnel to port 22; available: none")


async def test_local_port_in_use_is_reported(machine: Server, uppercase_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = await run_command(
            "tunnel", str(uppercase_port), "--local", str(port), *address_arguments(machine)
        )
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"cannot listen on port {port}: Address already in use; choose another with --local\n"
    )


async def test_tunnel_to_itself_is_refused(machine: Server) -> None:
    told = await run_command("tunnel", "9", "--local", "9", *address_arguments(machine))
    assert (told.code, told.out) == (2, "")
    assert told.err == "local port 9 would forward to itself; choose another with --local\n"


async def test_unreachable_machine_is_reported() -> None:
    told = await run_command("tunnel", "22", "--address", "localhost:1")
    assert told.code == 2
    assert told.err.startswith("cannot reach a machine at localhost:1 ")


async def test_invalid_port_is_refused() -> None:
    told = await run_command("tunnel", "65536")
    assert told.code == 2
    assert "65536 is not a port; ports range from 1 to 65535" in told.err
