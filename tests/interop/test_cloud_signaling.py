"""A machine that waits at the cloud, and a WebRTC client that calls it there by its name."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from benchmarks.parts.webrtc_client import CallFailed, WebRtcClient
from tests.interop.test_typescript_sdk import fake
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from tests.support.machine.running import run_server
from viam.app.app_client import APIKeyAuthorization
from viam.app.viam_client import ViamClient
from viam.gen.component.motor.v1.motor_pb2 import IsMovingRequest, SetPowerRequest
from viam.gen.robot.v1.robot_pb2 import ResourceNamesResponse

NAMES = "/viam.robot.v1.RobotService/ResourceNames"
COPY = "/viam.service.shell.v1.ShellService/CopyFilesToMachine"


def token_of(client: ViamClient) -> list[tuple[str, str]]:
    return [*client._metadata.items()]


@contextlib.asynccontextmanager
async def call_through(cloud: Cloud, host: str, client: ViamClient) -> AsyncIterator[WebRtcClient]:
    caller = WebRtcClient()
    try:
        async with grpc.aio.insecure_channel(cloud.address) as channel:
            await caller.connect(channel, host, token_of(client))
        yield caller
    finally:
        await caller.close()


async def list_names(client: WebRtcClient) -> list[str]:
    (reply,) = await client.call(NAMES, b"")
    return [each.name for each in ResourceNamesResponse.FromString(reply).resources]


async def test_clients_reach_the_machine_through_the_cloud(tmp_path: Path) -> None:
    async with run_cloud(tmp_path / "cloud") as cloud:
        owner = await cloud.connect()
        part = await owner.app_client.get_robot_part(await make_part(owner.app_client))
        machine: dict[str, Any] = {
            "cloud": {
                "id": part.id,
                "secret": part.secret,
                "fqdn": part.fqdn,
                "signaling_address": cloud.address,
                "signaling_insecure": True,
            },
            "components": [fake("motor", "component:motor")],
            "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "secret"}}]},
        }
        with pytest.raises(grpc.aio.AioRpcError, match="appears to be offline"):
            async with call_through(cloud, part.fqdn, owner):
                pass
        (organization,) = await owner.app_client.list_organizations()
        key, key_id = await owner.app_client.create_key(
            organization.id, [APIKeyAuthorization("operator", "robot", part.robot)], "operator"
        )
        operator = await cloud.connect(key_id, key)
        stranger_key, stranger_id = await _make_stranger(owner)
        stranger = await cloud.connect(stranger_id, stranger_key)
        (tmp_path / "machine").mkdir()
        async with run_server(machine, tmp_path / "machine") as server:
            await server.out.wait_for("waiting for clients at the signaling server")
            for _ in range(3):  # more than there are streams
                async with call_through(cloud, part.fqdn, owner) as client:
                    assert await list_names(client) == ["motor", "builtin"]
            async with call_through(cloud, part.fqdn, operator) as client:
                request = SetPowerRequest(name="motor", power_pct=0.5).SerializeToString()
                await client.call("/viam.component.motor.v1.MotorService/SetPower", request)
                await client.call(
                    "/viam.component.motor.v1.MotorService/IsMoving",
                    IsMovingRequest(name="motor").SerializeToString(),
                )
                with pytest.raises(CallFailed, match="requires the role owner"):
                    await client.call(COPY, b"")
            with pytest.raises(grpc.aio.AioRpcError, match="appears to be offline"):
                async with call_through(cloud, part.fqdn, stranger):
                    pass
        for each in (owner, operator, stranger):
            each.close()


async def _make_stranger(owner: ViamClient) -> tuple[str, str]:
    """Return a key with a role on another machine only."""
    app = owner.app_client
    part = await app.get_robot_part(await make_part(app))
    (organization,) = await app.list_organizations()
    return await app.create_key(
        organization.id, [APIKeyAuthorization("owner", "robot", part.robot)], "stranger"
    )
