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
from tests.running import DEADLINE, Server, running
from tests.unit.cli.commands import command, said


async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers when it has heard all."""
    writer.write((await reader.read()).upper())
    await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


@pytest.fixture
async def shouting() -> AsyncIterator[int]:
    async with await asyncio.start_server(shout, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def machine(tmp_path: Path, shouting: int) -> AsyncIterator[Server]:
    endpoints: list[Any] = [{"port": shouting, "connection_timeout": "2s"}, {"port": 9}]
    config = {"network": {"traffic_tunnel_endpoints": endpoints}}
    async with running(config, tmp_path) as server:
        await server.until(state="running")
        yield server


def at(server: Server) -> tuple[str, str]:
    return "--address", f"localhost:{server.port}"


async def asked(port: int, data: bytes) -> bytes:
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    return answer


async def test_several_connections_are_carried_until_ctrl_c(machine: Server, shouting: int) -> None:
    async with command("tunnel", str(shouting), *at(machine)) as process:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).decode()
        words = re.fullmatch(
            rf"forwarding localhost:(\d+) to port {shouting} of the machine at localhost:"
            rf"{machine.port}; press Ctrl-C to stop\n",
            line,
        )
        assert words is not None, line
        port = int(words[1])
        assert port != shouting, "that one is taken"
        large = b"x" * 3_000_000
        small, larger = await asyncio.gather(asked(port, b"hello"), asked(port, large))
        assert small == b"HELLO"
        assert larger == large.upper()
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE)
    assert (process.returncode, err) == (0, b"")
    assert sorted(out.decode().splitlines()) == [
        "connection closed: 3000000 bytes sent, 3000000 received",
        "connection closed: 5 bytes sent, 5 received",
    ]


async def test_a_connection_under_way_ends_with_the_command(machine: Server, shouting: int) -> None:
    async with command("tunnel", str(shouting), *at(machine)) as process:
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
    assert (process.returncode, err) == (0, b"")


async def test_a_port_where_nothing_listens_is_told_for_each_connection(machine: Server) -> None:
    async with command("tunnel", "9", *at(machine)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = (await asyncio.wait_for(process.stdout.readline(), DEADLINE)).decode()
        with contextlib.suppress(ConnectionError):
            assert await asked(int(line.partition("localhost:")[2].split()[0]), b"hello") == b""
        told = (await asyncio.wait_for(process.stderr.readline(), DEADLINE)).decode()
        process.send_signal(signal.SIGINT)
        await asyncio.wait_for(process.communicate(), DEADLINE)
    assert told.startswith("UNAVAILABLE: port 9 of the machine cannot be reached: ")


async def test_tunnels_are_listed(machine: Server, shouting: int) -> None:
    people = await said("tunnel", *at(machine))
    assert people == (0, f"{shouting}  (connection timeout 2s)\n9  (connection timeout 10s)\n", "")
    programs = await said("tunnel", "--json", *at(machine))
    assert json.loads(programs.out) == [
        {"port": shouting, "connection_timeout": 2.0},
        {"port": 9, "connection_timeout": 10.0},
    ]


async def test_a_machine_without_tunnels(tmp_path: Path) -> None:
    async with running({}, tmp_path) as server:
        none = await said("tunnel", *at(server))
        refused = await said("tunnel", "22", *at(server))
    assert (none.code, none.err) == (0, "")
    assert none.out.startswith("the machine has no tunnels; ")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("the machine has no tunnel to port 22; available: none")


async def test_a_local_port_that_is_taken_is_told(machine: Server, shouting: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = await said("tunnel", str(shouting), "--local", str(port), *at(machine))
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        f"cannot listen on port {port}: Address already in use; choose another with --local\n"
    )


async def test_a_tunnel_does_not_lead_to_itself(machine: Server) -> None:
    told = await said("tunnel", "9", "--local", "9", *at(machine))
    assert (told.code, told.out) == (2, "")
    assert told.err == "local port 9 would forward to itself; choose another with --local\n"


async def test_no_machine_is_told() -> None:
    told = await said("tunnel", "22", "--address", "localhost:1")
    assert told.code == 2
    assert told.err.startswith("cannot reach a machine at localhost:1 ")


async def test_what_is_no_port_is_told() -> None:
    told = await said("tunnel", "65536")
    assert told.code == 2
    assert "65536 is not a port; ports range from 1 to 65535" in told.err
