"""Logs of machines at the cloud: how long they are kept, how they are read, what they cost."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from tests.interop.test_app_client import PROGRAM
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import Cloud, run_cloud
from tests.support.cloud.tenants import Login, Tenant, call, list_fleet_methods, make_tenant
from tests.support.machine.running import start_server
from tests.support.waiting import pass_time
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.app.v1.app_pb2 import LogOrder
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.control_plane.periodic_task import PeriodicTasks
from cogwork.cloud.serve import list_maintenance
from cogwork.core.clock import ManualClock

HOUR = 3600.0
DAY = 24 * HOUR
START = 1_800_000_000 - 1_800_000_000 % DAY
ROBOT_METHODS = ("Config", "Certificate", "NeedsRestart")


@dataclass
class Fleet:
    cloud: Cloud
    clock: ManualClock
    tenant: Tenant
    client: AppClient
    """Of an owner of the organization."""
    part: PartClient
    operator: dict[str, str]
    """The login of an operator of the organization."""
    directory: Path

    async def log(self, *messages: str, **fields: Any) -> None:
        entries = [LogEntry(message=each, level="info", **fields) for each in messages]
        for entry in entries:
            entry.time.FromMicroseconds(int(self.clock.time() * 1e6))
        await self.part.call("Log", pb.LogRequest(id=self.part.id, logs=entries))

    async def read(self, **query: Any) -> list[str]:
        found = await self.client.get_robot_part_logs(self.part.id, num_log_entries=0, **query)
        return [each.message for each in found]

    def count_stored(self) -> int | None:
        """Return None if a file is being removed."""
        try:
            return sum(map(count_lines, (self.directory / "logs").glob("*.db")))
        except sqlite3.OperationalError:
            return None


def count_lines(file: Path) -> int:
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM log").fetchone()
    return int(count)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    clock = ManualClock(START)
    async with (
        run_cloud(tmp_path, clock) as cloud,
        make_tenant(cloud, "mine") as (tenant, client),
    ):
        role = APIKeyAuthorization("operator", "organization", tenant.organization)
        key, key_id = await client.create_key(tenant.organization, [role], "operator")
        operator = await cloud.connect(key_id, key)
        part = PartClient(cloud, tenant.part)
        await part.log_in((await client.get_robot_part(tenant.part)).secret)
        yield Fleet(cloud, clock, tenant, client, part, dict(operator._metadata), tmp_path)
        part.channel.close()
        operator.close()


async def test_lines_are_visible_and_stored_for_exactly_30_days(fleet: Fleet) -> None:
    context = fleet.cloud.context
    tasks = PeriodicTasks(fleet.clock, fleet.cloud.health)
    tasks.start(*list_maintenance(context))
    try:
        for day in range(60):
            await fleet.log(f"day {day}")
            expected = [f"day {each}" for each in range(day, max(-1, day - 30), -1)]
            assert await fleet.read() == expected
            waited = await wait_for_removal(fleet, len(expected))
            await fleet.clock.advance(DAY - waited)
    finally:
        await tasks.aclose()


async def wait_for_removal(fleet: Fleet, count: int) -> float:
    """Wait until so many lines are stored, and return the seconds by which the clock advanced."""
    waited = 0.0
    async with asyncio.timeout(60):
        while fleet.count_stored() != count:
            if waited < 2 * HOUR:
                waited += HOUR / 4
                await fleet.clock.advance(HOUR / 4)
            await pass_time(0.01)  # for the thread that removes lines
    return waited


async def test_no_method_and_no_role_removes_lines(fleet: Fleet) -> None:
    await fleet.log("kept")
    host, _, port = fleet.cloud.address.partition(":")
    channel = Channel(host, int(port))
    attempts = 0
    served = list_fleet_methods()
    destructive = [each for each in served if each.startswith(("Delete", "Remove"))]
    methods = [each for each in served if each not in destructive] + destructive
    first = await fleet.cloud.connect()  # owns the organization, too
    logins: tuple[Login, ...] = ({}, fleet.operator, dict(first._metadata))
    for name, login in itertools.product(methods, logins):
        attempts += 1
        await call(channel, served[name], fleet.tenant, login)
    for name in (*ROBOT_METHODS, "Log"):
        attempts += 1
        with contextlib.suppress(GRPCError):
            await fleet.part.call(name, getattr(pb, f"{name}Request")(id=fleet.part.id))
    channel.close()
    print(f"{attempts} attempts")
    with pytest.raises(GRPCError):
        await first.app_client.get_robot(fleet.tenant.machine)  # deleted by one of them
    found = await first.app_client.get_robot_part_logs(fleet.part.id)
    assert [each.message for each in found] == ["kept"]
    first.close()
    assert fleet.count_stored() == 1


async def test_pages_have_every_line_once(fleet: Fleet) -> None:
    for batch in range(5):
        await fleet.log(*(f"{batch}.{number}" for number in range(50)))
        await fleet.clock.advance(DAY)
    expected = [f"{batch}.{number}" for batch in range(5) for number in range(50)]
    assert await fleet.read() == expected[::-1]
    assert await fleet.read(order=LogOrder.LOG_ORDER_ASCENDING) == expected
    assert await fleet.read(filter="3.4") == ["3.4", *(f"3.4{n}" for n in range(10))][::-1]


async def test_lines_of_a_machine_with_a_wrong_clock_are_kept(fleet: Fleet) -> None:
    entries = [LogEntry(message=name) for name in ("past", "future", "long")]
    entries[0].time.seconds, entries[1].time.seconds = -(1 << 62), 1 << 62
    entries[1].time.nanos = -5
    entries[2].message *= 20_000
    entries[2].fields.add()["x"] = "y" * 40_000
    await fleet.part.call("Log", pb.LogRequest(id=fleet.part.id, logs=entries))
    found = await fleet.client.get_robot_part_logs(fleet.part.id)
    assert [each.message[:6] for each in found] == ["longlo", "future", "past"]
    assert len(found[0].message) == 32 << 10
    for each in found:  # as the SDK does when it exports logs
        assert each.caller is not None
        assert (each.caller["File"], each.caller["Line"]) == ("", 0)


async def test_full_batch_is_accepted(fleet: Fleet) -> None:
    await fleet.log(*("x" * 1000 for _ in range(1000)), logger_name="rdk")
    assert len(await fleet.read()) == 1000


async def test_usage_ends_with_the_machine(tmp_path: Path) -> None:
    """The program reads the directory of the cloud, also while it is served."""
    clock = ManualClock(time.time() // DAY * DAY - 9 * DAY)
    async with run_cloud(tmp_path, clock) as cloud:
        owner = await cloud.connect()
        app = owner.app_client
        (organization,) = await app.list_organizations()
        location = await app.create_location(organization.id, "Hall")
        for name in ("kept", "deleted"):
            machine = await app.new_robot(name, location.id)
            (part,) = await app.get_robot_parts(machine)
            client = PartClient(cloud, part.id)
            await client.log_in(part.secret)
            for _ in range(2):
                entries = [LogEntry(message="x" * 1000)] * 3
                await client.call("Log", pb.LogRequest(id=part.id, logs=entries))
                await clock.advance(DAY)
            client.channel.close()
            if name == "deleted":
                await app.delete_robot(machine)
        owner.close()
        arguments = ["usage", "--data", str(tmp_path)]
        async with start_server([*arguments, "--json"], program=PROGRAM) as program:
            assert await program.exit_code() == 0
        deleted, kept = json.loads(program.out.text)
        async with start_server(arguments, program=PROGRAM) as program:
            assert await program.exit_code() == 0
        table = [line.split() for line in program.out.text.splitlines()]
    assert [each["name"] for each in (deleted, kept)] == ["deleted", "kept"]
    assert [each["lines"] for each in deleted["days"]] == [3, 3]
    assert [each["charged_days"] for each in deleted["days"]] == [3, 2]
    assert [each["charged_days"] for each in kept["days"]] in ([10, 9], [11, 10])  # at midnight
    assert kept["deleted_on"] is None
    assert deleted["deleted_on"] == datetime.fromtimestamp(clock.time(), UTC).date().isoformat()
    assert deleted["bytes"] == sum(each["bytes"] for each in deleted["days"]) > 6000
    assert table[0] == [
        *("ORGANIZATION", "MACHINE", "LINES", "BYTES", "BYTE-DAYS", "REFUSED", "DROPPED"),
        "DELETED",
    ]
    assert table[1][:3] == ["Acme", "deleted", "6"]
    assert table[2][:3] == ["Acme", "kept", "6"]
