"""A machine that waits at a signaling server elsewhere, and real clients that call it there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from benchmarks.parts.webrtc_client import CallFailed, WebRtcClient
from tests.interop.test_typescript_sdk import fake
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.network.signaling_server import SignalingServer, run_signaling
from viam.gen.component.motor.v1.motor_pb2 import SetPowerRequest
from viam.gen.robot.v1.robot_pb2 import ResourceNamesResponse

HOST = "belt.example"
NAMES = "/viam.robot.v1.RobotService/ResourceNames"
SET_POWER = "/viam.component.motor.v1.MotorService/SetPower"


def machine(signaling: SignalingServer, key: str | None = None) -> dict[str, Any]:
    return {
        "cloud": {
            "id": "part-1",
            "api_key": {"id": "machine", "key": key or signaling.key},
            "fqdn": HOST,
            "signaling_address": f"127.0.0.1:{signaling.port}",
            "signaling_insecure": True,
        },
        "components": [fake("motor", "component:motor")],
        "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "secret"}}]},
    }


async def until_waiting(server: Server) -> None:
    await server.out.wait_for("waiting for clients at the signaling server")


@contextlib.asynccontextmanager
async def call_through(signaling: SignalingServer) -> AsyncIterator[WebRtcClient]:
    client = WebRtcClient()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{signaling.port}") as channel:
            await client.connect(channel, HOST)
        yield client
    finally:
        await client.close()


async def list_names(client: WebRtcClient) -> list[str]:
    (reply,) = await client.call(NAMES, b"")
    return [each.name for each in ResourceNamesResponse.FromString(reply).resources]


async def test_clients_reach_the_machine_through_the_signaling_server(tmp_path: Path) -> None:
    async with (
        run_signaling(SignalingServer()) as signaling,
        run_server(machine(signaling), tmp_path) as server,
    ):
        await until_waiting(server)
        for _ in range(3):  # more than there are answerers
            async with call_through(signaling) as client:
                assert await list_names(client) == ["motor", "builtin"]
        async with contextlib.AsyncExitStack() as stack:
            calls = [stack.enter_async_context(call_through(signaling)) for _ in range(4)]
            for client in await asyncio.gather(*calls):
                assert await list_names(client) == ["motor", "builtin"]
        assert "secret" not in server.output


async def test_signaling_server_says_who_calls(tmp_path: Path) -> None:
    async with (
        run_signaling(SignalingServer(role="viewer")) as signaling,
        run_server(machine(signaling), tmp_path) as server,
    ):
        await until_waiting(server)
        request = SetPowerRequest(name="motor", power_pct=0.5).SerializeToString()
        async with call_through(signaling) as client:
            assert await list_names(client) == ["motor", "builtin"]
            with pytest.raises(CallFailed, match=r'"alice@example\.com" has the role viewer'):
                await client.call(SET_POWER, request)


async def test_machine_tries_again_until_the_signaling_server_accepts_it(tmp_path: Path) -> None:
    async with (
        run_signaling(SignalingServer()) as signaling,
        run_server(machine(signaling, "another"), tmp_path) as server,
    ):
        await server.out.wait_for(
            "cannot wait for clients at the signaling server .*invalid credentials"
        )
        signaling.key = "another"
        await until_waiting(server)
        async with call_through(signaling) as client:
            assert await list_names(client) == ["motor", "builtin"]
        await signaling.restart()
        await server.out.wait_for("cannot wait for clients at the signaling server .*UNAVAILABLE")
        # More than one second: the machine waits before it tries again.
        async with call_through(signaling) as client:
            assert await list_names(client) == ["motor", "builtin"]


async def test_clients_end_with_the_signaling_server_in_the_file(tmp_path: Path) -> None:
    async with (
        run_signaling(SignalingServer()) as signaling,
        run_server(machine(signaling), tmp_path) as server,
    ):
        await until_waiting(server)
        async with call_through(signaling) as client:
            await until_ended(client, server, machine(signaling))


async def until_ended(client: WebRtcClient, server: Server, config: dict[str, Any]) -> None:
    ended = asyncio.Event()
    client.data.on("close", ended.set)

    def on_change() -> None:
        if client.connection.connectionState in ("failed", "closed"):
            ended.set()

    client.connection.on("connectionstatechange", on_change)
    del config["cloud"]
    server.save(with_free_port(config))
    async with asyncio.timeout(40):
        await ended.wait()


async def test_credentials_are_not_sent_in_plaintext_to_other_computers(tmp_path: Path) -> None:
    config = machine(SignalingServer(port=1))
    config["cloud"]["signaling_address"] = "192.0.2.7:1"
    async with run_server(config, tmp_path) as server:
        await server.out.wait_for("not connecting to the signaling server 192.0.2.7:1: .*plaintext")
        await server.out.wait_for("applied in")
