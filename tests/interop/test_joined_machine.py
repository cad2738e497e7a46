"""A machine that has joined a cloud: a real server, and a cloud with the SDK's fleet client."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from tests.support.machine.modular import poll
from tests.support.machine.running import DEADLINE, Server, run_server
from tests.support.sizes import limit, size

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.app.app_client import APIKeyAuthorization, AppClient  # noqa: E402
from viam.gen.app.v1.app_pb2 import GetRobotPartRequest, OnlineState  # noqa: E402
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub  # noqa: E402
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials  # noqa: E402

EDITS = size(ci=20, full=200)
SENSOR = {"name": "scale", "api": "rdk:component:sensor", "model": "fake"}


@dataclass
class Joined:
    """A machine, and what its owner knows of it."""

    cloud: Cloud
    client: AppClient
    part: str
    secret: str
    directory: Path
    refresh_interval: int = 1

    @property
    def file(self) -> dict[str, Any]:
        """The machine's file."""
        return {
            "cloud": {
                "id": self.part,
                "secret": self.secret,
                "app_address": f"http://{self.cloud.address}",
                "refresh_interval": f"{self.refresh_interval}s",
            },
            "network": {"bind_address": "localhost:0"},
        }

    def run(
        self, *, no_tls: bool = True, exits: int | None = 0
    ) -> contextlib.AbstractAsyncContextManager[Server]:
        arguments = ["-no-tls"] if no_tls else []
        return run_server(self.file, self.directory, arguments=arguments, exits=exits)

    async def save(self, *components: dict[str, Any]) -> None:
        part = await self.client.get_robot_part(self.part)
        config: Any = {"components": list(components)}
        await self.client.update_robot_part(self.part, part.name, config)

    async def is_online(self) -> bool:
        """The SDK's own classes lack the field."""
        stub: Any = self.client._app_client
        request = GetRobotPartRequest(id=self.part)
        reply = await stub.GetRobotPart(request, metadata=self.client._metadata)
        return bool(reply.part.online_state == OnlineState.ONLINE_STATE_ONLINE)

    async def wait_until_online(self) -> None:
        await poll(self.is_online, bool)


@contextlib.asynccontextmanager
async def new_machine(directory: Path) -> AsyncIterator[Joined]:
    async with run_cloud(directory / "cloud") as cloud:
        fleet = await cloud.connect()
        client = fleet.app_client
        part = await make_part(client)
        secret = (await client.get_robot_part(part)).secret
        try:
            yield Joined(cloud, client, part, secret, directory)
        finally:
            fleet.close()


async def test_machine_follows_the_edits_of_its_cloud(tmp_path: Path) -> None:
    took = []
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            await machine.wait_until_online()
            for number in range(EDITS):
                since = len(server.out.lines)
                await machine.save(SENSOR, {**SENSOR, "name": f"scale-{number}"})
                began = time.monotonic()
                await server.out.wait_for("applied in .* 2 ready", since)
                took.append(time.monotonic() - began)
        history = await machine.client.get_robot_part_history(machine.part)
        assert len(history) == min(EDITS + 1, 100)
    took.sort()
    print(f"=> {EDITS} edits: applied {took[EDITS // 2]:.3f} s after the reply (median), ", end="")
    print(f"{took[int(EDITS * 0.99)]:.3f} s (p99), {took[-1]:.3f} s (longest)")
    assert took[-1] < limit(1)


async def test_log_reaches_the_cloud(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            lines = await poll(
                lambda: machine.client.get_robot_part_logs(machine.part, num_log_entries=1000),
                lambda found: any("1 ready" in each.message for each in found),
            )
            # From before the machine knew its configuration.
            assert any("cogwork-server" in each.message for each in lines)
            assert {each.level for each in lines} <= {"info", "warn"}
        # What it said last is sent before it ends.
        lines = await machine.client.get_robot_part_logs(machine.part, num_log_entries=1000)
        assert any("stopping: SIGTERM" in each.message for each in lines)
        assert all(machine.secret not in str(each) for each in lines)


async def test_restart_in_the_cloud_restarts_the_machine(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            await machine.wait_until_online()
            since = len(server.out.lines)
            await machine.client.mark_part_for_restart(machine.part)
            await server.out.wait_for("stopping: someone asked for a restart", since)
            # The same process: a supervisor sees no end.
            await server.out.wait_for("1 ready", since + 1)
            assert server.process.returncode is None


async def test_machine_runs_without_its_cloud_and_catches_up(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            await machine.cloud.stop()
            await server.out.wait_for("does not answer")
        async with machine.run() as server:
            await server.out.wait_for("running the stored configuration from the cloud")
            await server.out.wait_for("1 ready")
            await machine.cloud.start()
            fleet = await machine.cloud.connect()
            machine.client = fleet.app_client
            began = time.monotonic()
            await machine.save(SENSOR, {**SENSOR, "name": "second"})
            await server.out.wait_for("2 ready")
            assert time.monotonic() - began < limit(15)
            # Of the time when the cloud was away.
            await poll(
                lambda: machine.client.get_robot_part_logs(machine.part, num_log_entries=1000),
                lambda found: any(
                    "running the stored configuration" in each.message for each in found
                ),
            )
            fleet.close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
async def test_machine_without_its_cloud_starts_with_what_it_applied_last(
    tmp_path: Path, end: signal.Signals
) -> None:
    two = SENSOR, {**SENSOR, "name": "second"}
    async with new_machine(tmp_path) as machine:
        machine.refresh_interval = 10
        await machine.save(*two)
        async with machine.run(exits=None) as server:
            await server.out.wait_for("applied in .* 2 ready")
            for components in ([SENSOR], two, [SENSOR]):
                since = len(server.out.lines)
                await machine.save(*components)
                await server.out.wait_for(f"applied in .* {len(components)} ready", since)
            server.signal(end)
        await machine.cloud.stop()
        async with machine.run() as server:
            await server.out.wait_for("running the stored configuration from the cloud")
            await server.out.wait_for("applied in .* 1 ready")
            await machine.cloud.start()


async def test_key_of_the_cloud_is_a_login_of_the_machine(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            assert await can_log_in(server, machine.cloud.key_id, machine.cloud.key)
            (organization,) = await machine.client.list_organizations()
            part = await machine.client.get_robot_part(machine.part)
            role = APIKeyAuthorization("operator", "robot", part.robot)
            key, key_id = await machine.client.create_key(organization.id, [role], "visitor")
            await poll(lambda: can_log_in(server, key_id, key), bool)
            await machine.client.delete_key(key_id)
            await poll(lambda: can_log_in(server, key_id, key), lambda found: not found)


async def test_machine_serves_tls_with_the_certificate_of_its_cloud(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        async with machine.run(no_tls=False) as server:
            assert server.url.startswith("https://")
            part = await machine.client.get_robot_part(machine.part)
            context = ssl.create_default_context(cafile=tmp_path / "cloud" / "ca.pem")
            _, writer = await asyncio.open_connection(
                "localhost", server.port, ssl=context, server_hostname=part.fqdn
            )
            writer.close()
            await writer.wait_closed()


async def can_log_in(server: Server, key_id: str, key: str) -> bool:
    channel = Channel("localhost", server.port)
    request = AuthenticateRequest(
        entity=key_id, credentials=Credentials(type="api-key", payload=key)
    )
    try:
        await AuthServiceStub(channel).Authenticate(request, timeout=DEADLINE)
    except GRPCError as error:
        if error.status is not Status.UNAUTHENTICATED:
            raise
        return False
    finally:
        channel.close()
    return True
