"""A real server process tells its service manager how it is."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.machine.running import DEADLINE, run_server


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as ours:
        ours.bind(str(tmp_path / "notify"))
        yield ours


async def receive(manager: socket.socket) -> str:
    message = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(manager, 4096), DEADLINE)
    return message.decode()


async def test_server_is_ready_alive_and_stopping(tmp_path: Path, manager: socket.socket) -> None:
    around = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "200000"}
    async with run_server({}, tmp_path, environment=around) as server:
        assert await receive(manager) == "READY=1"
        assert [await receive(manager) for _ in range(3)] == ["WATCHDOG=1"] * 3
        server.signal(signal.SIGTERM)
        while (message := await receive(manager)) == "WATCHDOG=1":
            pass
        assert message == "STOPPING=1"


async def test_server_that_does_not_start_is_never_ready(
    tmp_path: Path, manager: socket.socket
) -> None:
    around = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
    taken = {"network": {"bind_address": "192.0.2.1:80", "insecure_without_auth": True}}
    async with run_server(taken, tmp_path, environment=around, serves=False, exits=1) as server:
        assert await server.exit_code() == 1
    assert await receive(manager) == "STOPPING=1"
