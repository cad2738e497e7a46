"""A machine and its cloud whose connection ends silently: the machine moves to another network, or
the network is cut."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import PROGRAM, Server, run_server
from tests.support.network.namespaces import Computer, needs_namespaces, on_computer
from tests.support.network.slow_network import Rule, SlowNetwork, change_address, slow_network
from tests.support.sizes import limit
from tests.support.waiting import pass_time, poll

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.app.app_client import AppClient  # noqa: E402
from viam.gen.app.v1.app_pb2 import GetRobotPartRequest, OnlineState  # noqa: E402

pytestmark = needs_namespaces

SENSOR = {"name": "scale", "api": "rdk:component:sensor", "model": "fake"}
SYNCHRONIZED = limit(15.0)
SHOWN_OFFLINE = limit(17.0)
IDLE = 25.0
"""Seconds without a change, in which both sides ping."""


@dataclass
class Joined:
    """A machine and its cloud, on two computers."""

    server: Server
    computer: Computer
    network: SlowNetwork
    cloud: Server
    client: AppClient
    part: str

    async def save(self, *names: str) -> None:
        config: Any = {"components": [{**SENSOR, "name": name} for name in names]}
        await self.client.update_robot_part(self.part, "press-main", config)

    async def read_state(self) -> OnlineState.ValueType:
        """The SDK's own classes lack the field."""
        stub: Any = self.client._app_client
        request = GetRobotPartRequest(id=self.part)
        reply = await stub.GetRobotPart(request, metadata=self.client._metadata)
        return reply.part.online_state  # type: ignore[no-any-return]

    async def wait_for(self, state: OnlineState.ValueType) -> float:
        """Return how many seconds it took until the cloud reports the state."""
        began = time.monotonic()
        await poll(self.read_state, lambda found: found == state)
        return time.monotonic() - began


@contextlib.asynccontextmanager
async def run_joined(directory: Path) -> AsyncIterator[Joined]:
    process = CloudProcess(directory / "cloud")
    with contextlib.ExitStack() as stack:
        there, here, network = stack.enter_context(slow_network())
        stack.enter_context(on_computer(here))
        await process.initialize()
        async with process.serve("--allow-plaintext", host=here.address) as cloud:
            part, secret = await process.create_machine("press")
            fleet = await process.client().connect()
            stack.callback(fleet.close)
            login = {"id": part, "secret": secret, "app_address": f"http://{process.address}"}
            async with run_server(
                {"cloud": login},
                directory,
                program=[*there.prefix, *PROGRAM],
                arguments=["-no-tls", "-disable-mdns", "-allow-insecure-creds"],
            ) as server:
                joined = Joined(server, there, network, cloud, fleet.app_client, part)
                await joined.save("scale")
                await server.out.wait_for("applied in .* 1 ready")
                await joined.wait_for(OnlineState.ONLINE_STATE_ONLINE)
                yield joined


async def test_machine_with_another_address_has_the_next_configuration_in_time(
    tmp_path: Path,
) -> None:
    async with run_joined(tmp_path) as joined:
        change_address(joined.computer, "10.78.0.3")
        began = time.monotonic()
        await joined.save("scale", "second")
        await joined.server.out.wait_for("applied in .* 2 ready")
        took = time.monotonic() - began
    print(f"=> synchronized {took:.1f} s after the address changed")
    assert took < SYNCHRONIZED


async def test_cloud_notices_that_a_machine_is_gone(tmp_path: Path) -> None:
    async with run_joined(tmp_path) as joined:
        joined.network.apply(Rule(is_cut=True))
        took = await joined.wait_for(OnlineState.ONLINE_STATE_OFFLINE)
        joined.network.apply(Rule())
        back = await joined.wait_for(OnlineState.ONLINE_STATE_ONLINE)
    print(f"=> shown offline {took:.1f} s after the cut, and online again after {back:.1f} s")
    assert took < SHOWN_OFFLINE
    assert back < SYNCHRONIZED


async def test_pings_do_not_end_an_idle_connection(tmp_path: Path) -> None:
    async with run_joined(tmp_path) as joined:
        before = joined.network.count_bytes()
        await pass_time(IDLE)
        bytes_sent = sum(joined.network.count_bytes()) - sum(before)
        since = len(joined.server.out.lines)
        began = time.monotonic()
        await joined.save("scale", "second")
        await joined.server.out.wait_for("applied in .* 2 ready", since)
        took = time.monotonic() - began
    print(f"=> {bytes_sent / IDLE:.0f} bytes per second while idle; then applied in {took:.2f} s")
    # A connection that was closed would be opened again only a second later.
    assert took < limit(1.0)
