"""Clients of lower roles whose WebRTC offers never open, beside an owner who connects."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import grpc.aio
from benchmarks.parts.webrtc_client import WebRtcClient
from tests.interop.test_cloud_signaling import list_names, token_of
from tests.interop.test_typescript_sdk import fake
from tests.support.cloud.fleet import make_part, run_cloud
from tests.support.machine.login import config, log_in
from tests.support.machine.running import run_server
from tests.support.waiting import pass_time
from viam.app.app_client import APIKeyAuthorization

CALLERS = 8
PAUSE = 0.05
HOST = "belt"
Login = Sequence[tuple[str, str]]


class Flood:
    """Clients that send one offer after the other, and never connect."""

    def __init__(self, address: str, host: str, login: Login) -> None:
        self.outcomes: Counter[str] = Counter()
        self._address = address
        self._host = host
        self._login = login

    @contextlib.asynccontextmanager
    async def run(self, answered: int) -> AsyncIterator[None]:
        """Run the block beside the flood, which begins with this number of answered offers."""
        sdp = await make_offer()
        enough = asyncio.Event()
        async with grpc.aio.insecure_channel(self._address) as channel:

            async def send_offers() -> None:
                while True:
                    try:
                        await WebRtcClient.offer(channel, self._host, sdp, self._login)
                        outcome = "answered"
                    except grpc.aio.AioRpcError as error:
                        outcome = error.code().name
                    self.outcomes[outcome] += 1
                    if self.outcomes["answered"] >= answered:
                        enough.set()
                    await pass_time(PAUSE)

            flooding = [asyncio.create_task(send_offers()) for _ in range(CALLERS)]
            try:
                async with asyncio.timeout(60):
                    await enough.wait()
                yield
            finally:
                for task in flooding:
                    task.cancel()
                await asyncio.gather(*flooding, return_exceptions=True)


async def make_offer() -> str:
    client = WebRtcClient()
    await client.connection.setLocalDescription(await client.connection.createOffer())
    sdp: str = client.connection.localDescription.sdp
    await client.close()
    return sdp


async def connect(address: str, host: str, login: Login) -> float:
    """Connect, call, and return how long it took to connect."""
    client, began = WebRtcClient(), time.monotonic()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            await client.connect(channel, host, login)
        took = time.monotonic() - began
        assert "motor" in await list_names(client)
    finally:
        await client.close()
    return took


async def test_operator_does_not_keep_owners_out_through_the_cloud(tmp_path: Path) -> None:
    async with run_cloud(tmp_path / "cloud") as cloud:
        owner = await cloud.connect()
        app = owner.app_client
        part = await app.get_robot_part(await make_part(app))
        (organization,) = await app.list_organizations()
        role = APIKeyAuthorization("operator", "robot", part.robot)
        key, key_id = await app.create_key(organization.id, [role], "operator")
        operator = await cloud.connect(key_id, key)
        machine: dict[str, Any] = {
            "cloud": {
                "id": part.id,
                "secret": part.secret,
                "fqdn": part.fqdn,
                "signaling_address": cloud.address,
                "signaling_insecure": True,
            },
            "components": [fake("motor", "component:motor")],
        }
        (tmp_path / "machine").mkdir()
        async with run_server(machine, tmp_path / "machine") as server:
            await server.out.wait_for("waiting for clients at the signaling server")
            flood = Flood(cloud.address, part.fqdn, token_of(operator))
            async with flood.run(answered=6):
                took = [await connect(cloud.address, part.fqdn, token_of(owner)) for _ in range(2)]
        print(f"owner connected in {took} s beside {flood.outcomes}")
        owner.close()
        operator.close()


async def test_viewer_does_not_keep_owners_out(tmp_path: Path) -> None:
    machine = {**config("owner", "viewer"), "components": [fake("motor", "component:motor")]}
    async with run_server(machine, tmp_path) as server:
        address = f"127.0.0.1:{server.port}"
        viewer, owner = [
            [("authorization", f"Bearer {await asyncio.to_thread(log_in, server.port, role)}")]
            for role in ("viewer", "owner")
        ]
        flood = Flood(address, HOST, viewer)
        async with flood.run(answered=48):
            took = await connect(address, HOST, owner)
    print(f"owner connected in {took:.1f} s beside {flood.outcomes}")
