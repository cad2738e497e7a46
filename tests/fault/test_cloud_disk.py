"""A cloud whose disk is low, and then full: what it refuses, what still works, what it says."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.health.v1.health_grpc import HealthStub
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.cloud.fleet import make_part as make_fleet_part
from tests.support.cloud.fleet import run_cloud
from tests.support.machine.modular import poll
from tests.support.machine.running import http_get
from tests.support.small_disk import small_disk
from tests.support.waiting import pass_time
from viam.app.app_client import AppClient
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.control_plane.health import StoreState
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import PartRow
from cogwork.core.clock import ManualClock

DISK = 128 << 10
"""Kilobytes. A quarter of it is the reserve."""
RESERVE = 32 << 20
WITHIN = 60.0


@dataclass
class FullCloud:
    process: CloudProcess
    app: AppClient
    disk: Path

    async def health(self) -> tuple[int, dict[str, Any]]:
        host, _, port = self.process.address.partition(":")
        status, body = await http_get(host, int(port), "/healthz")
        return status, json.loads(body)

    async def wait_for_health(self, status: str) -> dict[str, Any]:
        found = await poll(self.health, lambda each: each[1]["status"] == status, WITHIN)
        assert found[0] == (200 if status == "ok" else 503)
        return found[1]

    def leave(self, size: int) -> None:
        """Fill the disk by another file, except for so many bytes."""
        file = self.disk / "other"
        file.unlink(missing_ok=True)
        usage = os.statvfs(self.disk)
        free = usage.f_bavail * usage.f_frsize
        with file.open("wb") as other:
            os.posix_fallocate(other.fileno(), 0, max(4096, free - size))

    def free(self) -> None:
        (self.disk / "other").unlink()


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[FullCloud]:
    with small_disk(tmp_path / "disk", DISK) as disk:
        process = CloudProcess(disk / "cloud")
        await process.initialize()
        async with process.serve(), connect(process) as app:
            yield FullCloud(process, app, disk)


@asynccontextmanager
async def connect(process: CloudProcess) -> AsyncIterator[AppClient]:
    client = await process.client().connect()
    try:
        yield client.app_client
    finally:
        client.close()


@pytest.mark.timeout(600)
async def test_disk_fills_and_is_freed(cloud: FullCloud) -> None:
    await cloud.wait_for_health("ok")
    part = await make_part(cloud)
    await check_low_disk(cloud, part)
    await check_full_disk(cloud, part)
    part.channel.close()
    await check_failing_writes(cloud)


async def check_low_disk(cloud: FullCloud, part: PartClient) -> None:
    """Logs stop before the reserve, and records do not."""
    refusal = await flood(part)
    assert refusal.status is Status.UNAVAILABLE
    assert refusal.message is not None
    assert refusal.message.startswith("the disk of the cloud is almost full:")
    found = await cloud.wait_for_health("degraded")
    (problem,) = found["problems"]
    assert problem["component"] == "disk"
    assert problem["reason"].startswith("disk low:")
    assert await check(cloud) == HealthCheckResponse.SERVING
    (organization,) = await cloud.app.list_organizations()
    for number in range(20):
        await cloud.app.create_location(organization.id, f"Hall {number}")
    config: dict[str, Any] = {"components": [], "note": "x" * 500_000}
    for _ in range(5):
        await cloud.app.update_robot_part(part.id, "press", config)
    space = os.statvfs(cloud.disk)
    assert space.f_bavail * space.f_frsize > RESERVE // 2
    assert await cloud.app.get_robot_part_logs(part.id)


async def check_full_disk(cloud: FullCloud, part: PartClient) -> None:
    """An owner cuts a part off, although another program has filled the disk."""
    cloud.leave(0)
    (machine,) = [each for each in await list_machines(cloud) if each.name == "press"]
    await cloud.app.delete_robot(machine.id)
    with pytest.raises(GRPCError) as refused:
        await log(part, 1)
    assert refused.value.status in (Status.UNAUTHENTICATED, Status.NOT_FOUND)


async def check_failing_writes(cloud: FullCloud) -> None:
    """Health is red while writes fail, and recovers; so does what is written periodically."""
    cloud.free()
    part = await make_part(cloud)
    (organization,) = await cloud.app.list_organizations()

    async def fill() -> Status:
        """Fill the disk, also by what the cloud gives up, until a record cannot be written."""
        cloud.leave(0)
        try:
            await cloud.app.create_location(organization.id, "x" * 100)
        except GRPCError as error:
            return error.status
        return Status.OK

    assert await poll(fill, lambda status: status is not Status.OK) is Status.UNAVAILABLE
    found = await cloud.wait_for_health("failing")
    states = {each["component"]: each["status"] for each in found["problems"]}
    assert (states["records"], states["disk"]) == ("failing", "degraded")
    assert await check(cloud) == HealthCheckResponse.NOT_SERVING
    await part.call("Config", pb.ConfigRequest(id=part.id))  # machines are still served
    cloud.free()
    await poll(cloud.health, lambda each: each[1]["status"] != "failing", WITHIN)
    assert await check(cloud) == HealthCheckResponse.SERVING
    await cloud.app.create_location(organization.id, "Hall")
    part.channel.close()


async def make_part(cloud: FullCloud) -> PartClient:
    part, secret = await cloud.process.create_machine("press")
    client = PartClient(cloud.process.client(), part)
    await client.log_in(secret)
    return client


async def list_machines(cloud: FullCloud) -> list[Any]:
    (organization,) = await cloud.app.list_organizations()
    locations = await cloud.app.list_locations(organization.id)
    return [each for location in locations for each in await cloud.app.list_robots(location.id)]


async def log(part: PartClient, count: int, length: int = 10) -> None:
    entries = [LogEntry(message="x" * length, level="info")] * count
    await part.call("Log", pb.LogRequest(id=part.id, logs=entries))


async def flood(part: PartClient) -> GRPCError:
    """Send lines until the disk is low, and ignore quotas."""
    async with asyncio.timeout(120):
        while True:
            try:
                await log(part, 200, 20_000)
            except GRPCError as error:
                if error.status is not Status.RESOURCE_EXHAUSTED:
                    return error
                await pass_time(0.1)


async def check(cloud: FullCloud) -> int:
    host, _, port = cloud.process.address.partition(":")
    channel = Channel(host, int(port))
    try:
        return (await HealthStub(channel).Check(HealthCheckRequest(), timeout=WITHIN)).status
    finally:
        channel.close()


async def test_times_are_saved_again_after_a_full_disk(tmp_path: Path) -> None:
    clock = ManualClock()
    with small_disk(tmp_path / "disk", DISK) as disk:
        async with run_cloud(disk / "cloud", clock) as running:
            owner = await running.connect()
            cloud = FullCloud(CloudProcess(disk), owner.app_client, disk)
            part = PartClient(running, await make_fleet_part(owner.app_client))
            context = running.context

            async def save() -> StoreState:
                """Let the part be seen, and its time be saved."""
                context.presence.note(await context.records.read(lambda tx: find(tx, part.id)))
                if (disk / "other").exists():
                    cloud.leave(0)
                await clock.advance(30)
                return running.health.state

            async def is_saved() -> bool:
                await save()
                row = await context.records.read(lambda tx: find(tx, part.id))
                return bool(row.last_access_at)

            cloud.leave(0)
            await poll(save, lambda state: state is StoreState.FAILING)
            cloud.free()
            await poll(is_saved, bool)
            assert await poll(save, lambda state: state is StoreState.OK) is StoreState.OK
            part.channel.close()
            owner.close()


def find(tx: Transaction, part: str) -> PartRow:
    return select(tx, PartRow, "WHERE id = ?", part)[0]
