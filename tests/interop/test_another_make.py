"""Commands against real servers that are not ours: one in Go, and one made with the SDK only."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.interop import sdk_server
from tests.support.go_programs import build, needs_go
from tests.support.machine.commands import CommandResult, run_command
from tests.support.machine.running import start_server
from tests.support.media.rtsp_server import free_port
from tests.support.network.namespaces import Computer, local_network, needs_namespaces
from tests.support.waiting import poll

NAMES = ("belt-main.abc.example.com", "belt-main.abc.local.example.com")
FIND = (sys.executable, "-m", "cogwork.cli.main", "find", "--json")


@contextlib.asynccontextmanager
async def run_go_server(address: str, prefix: Sequence[str] = ()) -> AsyncIterator[str]:
    """Yield the address on which it listens."""
    program = await asyncio.to_thread(build, "server")
    async with start_server([address, *NAMES], program=[*prefix, str(program)]) as server:
        yield (await server.out.wait_for(r"serving (\S+)"))[1]


@needs_go
async def test_server_in_go_is_shown_and_called() -> None:
    async with run_go_server("127.0.0.1:0") as address:

        async def run(*words: str) -> CommandResult:
            return await run_command(*words, "--address", address)

        status, graph, logs = await run("status"), await run("graph"), await run("logs")
        call = await run("call", "gauge", "get_readings")
    assert status.out.splitlines() == [
        "running, 1 of 1 resources ready",
        "server rdk 0.99.0, API v0.1.577",
        "ready  rdk:component:sensor/gauge",
    ]
    assert (status.code, len(status.err.splitlines())) == (0, 1)
    assert (graph.code, graph.out) == (0, "gauge  sensor  ready\n")
    assert (logs.code, "it does not show its log; look where" in logs.err) == (2, True)
    assert (call.code, json.loads(call.out), call.err) == (0, {"readings": {"bar": 2.5}}, "")


async def test_server_made_with_the_sdk_is_shown_and_called() -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    program = (sys.executable, sdk_server.__file__)
    async with start_server([str(port)], program=program):
        status = await poll(
            lambda: run_command("status", "--json", "--address", address),
            lambda result: "Connection refused" not in result.err,
        )
        call = await run_command("call", "thermometer", "get_readings", "--address", address)
    view = json.loads(status.out)
    (thermometer,) = view["resources"]
    assert (view["state"], thermometer["name"]) == ("unknown", "rdk:component:sensor/thermometer")
    assert status.code == 1
    assert (call.code, call.err) == (0, "")
    assert json.loads(call.out) == {"readings": {"celsius": 21.5}}


async def find(computer: Computer) -> list[dict[str, Any]]:
    found = await asyncio.to_thread(computer.run, *FIND, check=False)
    machines: list[dict[str, Any]] = json.loads(found.stdout)
    return machines


@needs_go
@needs_namespaces
@pytest.mark.parametrize("is_elsewhere", [True, False])
async def test_server_in_go_is_found_once_with_its_public_port(*, is_elsewhere: bool) -> None:
    """It says each name in two spellings, at two hosts, and also that of a local port."""
    with local_network(2) as (there, here):
        async with (
            run_go_server("0.0.0.0:8080", there.prefix),
            run_go_server("127.0.0.1:0", there.prefix),
        ):
            (found,) = await find(here if is_elsewhere else there)
    assert (found["name"], found["address"], found["port"]) == (NAMES[0], there.address, 8080)
