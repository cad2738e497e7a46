"""Machines that log too much, and readers that search too much, beside those that do not."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import Cloud, run_cloud
from tests.support.machine.modular import poll
from tests.support.waiting import pass_time, run_others
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.app.v1.app_grpc import AppServiceStub
from viam.gen.app.v1.app_pb2 import GetRobotPartLogsRequest
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.commands.log_usage import format_table, report_usage, select_parts
from cogwork.cloud.fleet.log_losses import list_losses
from cogwork.cloud.machine.log_quota import LogRates
from cogwork.core.clock import SystemClock
from cogwork.core.limits.token_bucket import Rate
from cogwork.logs.entry import Entry
from cogwork.logs.spool import Spool
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin
from cogwork.uplink.errors import RetryLater
from cogwork.uplink.log_link import LogLink

RATES = LogRates(Rate(200, 2000), Rate(1e6, 1e7), Rate(1e6, 1e6), Rate(1e9, 1e9))
"""Of a part. Small enough that a test reaches them."""


@dataclass
class Fleet:
    cloud: Cloud
    app: AppClient
    organization: str
    location: str

    async def make_part(self, name: str) -> PartClient:
        machine = await self.app.new_robot(name, self.location)
        (part,) = await self.app.get_robot_parts(machine)
        client = PartClient(self.cloud, part.id)
        await client.log_in(part.secret)
        return client

    async def log(self, part: PartClient, count: int) -> None:
        entries = [LogEntry(message=f"line {number}", level="info") for number in range(count)]
        await part.call("Log", pb.LogRequest(id=part.id, logs=entries))


@asynccontextmanager
async def run_fleet(directory: Path, rates: LogRates | None = RATES) -> AsyncIterator[Fleet]:
    async with run_cloud(directory, log_rates=rates) as cloud:
        owner = await cloud.connect()
        (organization,) = await owner.app_client.list_organizations()
        location = await owner.app_client.create_location(organization.id, "Hall")
        yield Fleet(cloud, owner.app_client, organization.id, location.id)
        owner.close()


async def flood(fleet: Fleet, part: PartClient) -> GRPCError:
    """Send lines until the cloud refuses more."""
    for _ in range(100):
        try:
            await fleet.log(part, 1000)
        except GRPCError as error:
            return error
    raise AssertionError("nothing was refused")


async def test_part_over_its_quota_is_refused_and_others_are_not(tmp_path: Path) -> None:
    async with run_fleet(tmp_path) as fleet:
        flooding, quiet = [await fleet.make_part(name) for name in ("flood", "quiet")]
        refusal = await flood(fleet, flooding)
        assert refusal.status is Status.RESOURCE_EXHAUSTED
        assert refusal.message is not None
        assert refusal.message.startswith("the quota of this part for log lines is spent; send")
        await fleet.log(quiet, 100)
        assert len(await fleet.app.get_robot_part_logs(quiet.id)) == 100
        await flooding.call("Config", pb.ConfigRequest(id=flooding.id))
        client = CloudClient(
            f"http://{fleet.cloud.address}",
            CloudLogin(flooding.id, "robot-secret", await secret_of(fleet, flooding)),
        )
        request = pb.LogRequest(id=flooding.id, logs=[LogEntry(message="one more")])
        with pytest.raises(RetryLater) as told:
            await client.call("/viam.app.v1.RobotService/Log", request, pb.LogResponse, 10)
        assert 0 < told.value.retry_after <= 20
        await client.aclose()
        for each in (flooding, quiet):
            each.channel.close()


async def secret_of(fleet: Fleet, part: PartClient) -> str:
    return str((await fleet.app.get_robot_part(part.id)).secret)


async def test_machine_counts_what_it_drops_and_the_cloud_shows_it(tmp_path: Path) -> None:
    async with run_fleet(tmp_path / "cloud") as fleet:
        part = await fleet.make_part("flood")
        client = CloudClient(
            f"http://{fleet.cloud.address}",
            CloudLogin(part.id, "robot-secret", await secret_of(fleet, part)),
        )
        spool = Spool(tmp_path / "spool")
        link = LogLink(spool, client, part.id, SystemClock())
        sending = asyncio.create_task(link.run())
        for number in range(20_000):
            link.put(Entry(time.time(), logging.INFO, "rdk", "x:1", f"line {number}"))
            if number % 1000 == 0:
                await run_others()

        async def count() -> int:
            return (await asyncio.to_thread(spool.counts)).queued

        await poll(count, lambda queued: not queued, 60)
        counts = spool.counts()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await link.aclose()
        await client.aclose()
        assert counts.put == 20_000
        assert counts.dropped > 10_000
        context = fleet.cloud.context
        await fleet.cloud.log_losses.save(context.records)
        shown: Any = (await fleet.app.get_robot_part(part.id)).user_supplied_info
        assert shown["log"]["dropped_lines"] == counts.dropped
        assert shown["log"]["refused_lines"] > 0
        losses = await context.records.read(list_losses)
        stored = await context.logs.measure(context.now())
        parts = await context.records.read(select_parts)
        (usage,) = report_usage(stored, losses, parts, context.now())
        assert usage.dropped == counts.dropped
        notices = sum(each.lines for each in usage.days) - counts.delivered
        assert 1 <= notices <= 20
        assert format_table([usage]).splitlines()[1].split()[6] == f"{counts.dropped:,}"
        part.channel.close()


async def test_one_reader_does_not_delay_another(tmp_path: Path) -> None:
    async with run_fleet(tmp_path, None) as fleet:
        part = await fleet.make_part("press")
        long = [LogEntry(message="ä" * 16_000)] * 50
        for _ in range(4):
            await part.call("Log", pb.LogRequest(id=part.id, logs=long))
        role = APIKeyAuthorization("operator", "organization", fleet.organization)
        key, key_id = await fleet.app.create_key(fleet.organization, [role], "other")
        other = await fleet.cloud.connect(key_id, key)
        request = GetRobotPartLogsRequest(id=part.id, filter="not in there")

        async def search(client: AppClient) -> Status:
            stub, login = AppServiceStub(part.channel), dict(client._metadata)
            try:
                await stub.GetRobotPartLogs(request, metadata=login)
            except GRPCError as error:
                return error.status
            return Status.OK

        began = time.monotonic()
        assert await search(fleet.app) is Status.OK
        alone = time.monotonic() - began
        searches = [asyncio.create_task(search(fleet.app)) for _ in range(30)]
        await pass_time(alone)
        began = time.monotonic()
        assert await search(other.app_client) is Status.OK
        beside = time.monotonic() - began
        assert beside < 5 * alone + 1, "it did not wait for those of the other reader"
        refused = [task.result() for task in searches if task.done()]
        assert set(refused) <= {Status.OK, Status.RESOURCE_EXHAUSTED}
        assert Status.RESOURCE_EXHAUSTED in refused, "so many of one reader may not wait"
        for task in searches:
            task.cancel()
        await asyncio.gather(*searches, return_exceptions=True)
        began = time.monotonic()
        assert await search(fleet.app) is Status.OK
        after = time.monotonic() - began
        print(f"=> alone {alone:.2f} s, beside 30 {beside:.2f} s, after they left {after:.2f} s")
        assert after < 5 * alone + 1, "searches end with their clients"
        other.close()
        part.channel.close()
