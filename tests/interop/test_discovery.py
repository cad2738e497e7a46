"""Machines are found by name on a network of their own, by the SDK and by `cogwork find`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.machine.running import PROGRAM, Server, run_server
from tests.support.machine.watched import FAKES
from tests.support.network.namespaces import Computer, local_network, needs_namespaces

pytestmark = needs_namespaces

FIND = (sys.executable, "-m", "cogwork.cli.main", "find", "--json")
DIAL = """
import asyncio, sys
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

async def main():
    options = DialOptions(insecure=True, force_p2p=True, timeout=60)
    robot = await RobotClient.at_address(
        sys.argv[1], RobotClient.Options(dial_options=options, refresh_interval=0)
    )
    print("NAMES", sorted(each.name for each in robot.resource_names))
    await robot.close()

asyncio.run(main())
"""


@contextlib.asynccontextmanager
async def run_machine(
    computer: Computer, directory: Path, name: str, *arguments: str
) -> AsyncIterator[Server]:
    directory.mkdir()
    network = {"bind_address": ":8080", "fqdn": name, "insecure_without_auth": True}
    async with run_server(
        {**FAKES, "network": network},
        directory,
        program=[*computer.prefix, *PROGRAM],
        arguments=arguments,
    ) as server:
        await server.out.wait_for("applied in")
        yield server


async def find(computer: Computer) -> list[dict[str, Any]]:
    found = await asyncio.to_thread(computer.run, *FIND, check=False)
    machines: list[dict[str, Any]] = json.loads(found.stdout)
    return [each for each in machines if each["address"].startswith("10.")]


async def test_sdk_finds_a_machine_by_its_name(tmp_path: Path) -> None:
    with local_network(2) as (there, here):
        async with run_machine(there, tmp_path / "a", "belt.factory"):
            (found,) = await find(here)
            assert found.pop("host")
            assert found == {
                "name": "belt.factory",
                "address": there.address,
                "port": 8080,
                "transports": ["grpc", "webrtc"],
            }
            dialed = await asyncio.to_thread(
                here.run, sys.executable, "-c", DIAL, "belt.factory", check=False
            )
            assert "NAMES [" in dialed.stdout, dialed.stderr
        assert await find(here) == []


async def test_machines_with_one_name_are_told_apart(tmp_path: Path) -> None:
    with local_network(3) as (first, second, here):
        async with (
            run_machine(first, tmp_path / "a", "belt.factory"),
            run_machine(second, tmp_path / "b", "belt.factory"),
        ):
            found = await find(here)
            assert [(each["name"], each["address"]) for each in found] == [
                ("belt.factory", first.address),
                ("belt.factory", second.address),
            ]
            printed = await asyncio.to_thread(here.run, *FIND[:-1])
            assert printed.stdout.splitlines()[0].split() == ["NAME", "ADDRESS", "TRANSPORTS"]


async def test_remote_is_found_by_its_name(tmp_path: Path) -> None:
    with local_network(2) as (there, here):
        config = {"remotes": [{"name": "line", "address": "belt.factory", "insecure": True}]}
        (tmp_path / "cell").mkdir()
        async with (
            run_machine(there, tmp_path / "a", "belt.factory"),
            run_server(
                config, tmp_path / "cell", program=[*here.prefix, *PROGRAM], arguments=()
            ) as cell,
        ):
            await cell.out.wait_for("remote line is connected at belt.factory")


async def test_machine_without_mdns_is_not_found(tmp_path: Path) -> None:
    with local_network(2) as (there, here):
        async with run_machine(there, tmp_path / "a", "belt.factory", "-disable-mdns"):
            assert await find(here) == []


async def test_interface_that_comes_later_is_used(tmp_path: Path) -> None:
    with local_network(2) as (there, here):
        there.run("ip", "link", "set", "eth0", "down")
        async with run_machine(there, tmp_path / "a", "belt.factory"):
            assert await find(here) == []
            there.run("ip", "link", "set", "eth0", "up")
            async with asyncio.timeout(30):
                while not await find(here):
                    pass
