"""Keys are rotated and created by commands, while a cloud is served as a process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.cloud.cloud_process import PROGRAM, CloudProcess
from tests.support.cloud.fleet import Cloud
from tests.support.machine.running import start_server
from tests.support.waiting import pass_time
from viam.app.viam_client import ViamClient


async def call_repeatedly(client: ViamClient) -> None:
    async with asyncio.timeout(60):
        while True:
            await client.app_client.list_organizations()
            await pass_time(0.02)


async def test_served_cloud_follows_the_commands(tmp_path: Path) -> None:
    cloud = CloudProcess(tmp_path / "cloud")
    await cloud.initialize()
    async with cloud.serve():
        client = await cloud.client().connect()
        await client.app_client.list_organizations()
        second = ["serve", "--data", str(tmp_path / "cloud"), "--address", "localhost:0"]
        async with start_server(second, program=PROGRAM) as refused:
            assert await refused.exit_code() == 1
        assert "is in use by the process" in refused.out.text

        await cloud.command("key", "rotate", "token", "--now")
        with pytest.raises(GRPCError) as ended:
            await call_repeatedly(client)
        assert ended.value.status is Status.UNAUTHENTICATED
        client.close()

        created = await cloud.command("key", "create")
        key_id, key = (line.split()[-1] for line in created.splitlines() if line[:5] == "  key")
        again = await Cloud(cloud.address, key_id, key).connect()
        (organization,) = await again.app_client.list_organizations()
        assert organization.name == "Main"
        again.close()
