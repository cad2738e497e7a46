"""A rollout to many machines, on some of which the version fails."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path

import pytest
from grpclib.client import Channel
from tests.support.agent.update_agent import UpdateAgent
from tests.support.archives import write_release
from tests.support.cloud.fleet import Cloud, run_cloud
from tests.support.sizes import size

from cogwork.cloud.commands.release_commands import store_release
from cogwork.cloud.updates.rollout import RolloutState, is_reached
from cogwork.cloud.updates.rollout_status import RolloutStatus, read_status
from cogwork.cloud.updates.rollout_supervisor import review_rollouts
from cogwork.cloud.updates.rollouts import RolloutPlan, start_rollout
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome

MACHINES = size(100, 200)
OLD, BAD, FIXED = "1.0.0", "2.0.0", "2.0.1"
HOUR = 3600.0


class SimulatedMachine:
    """It installs what it is told to. If the server does not start, it goes back and says so."""

    def __init__(self, name: str, agent: UpdateAgent, bad_version: str) -> None:
        self.name = name
        self.agent = agent
        self._bad_version = bad_version
        self.tried: list[str] = []

    async def poll(self) -> None:
        before = self.agent.server
        wanted = (await self.agent.poll_server()).version
        if wanted == before:
            return
        self.tried.append(wanted)
        if wanted == self._bad_version:
            reason = f"{self.name} crashed: no module named fan"
            await self.agent.report(wanted, Outcome.ROLLED_BACK, reason)
        else:
            self.agent.server = wanted
            await self.agent.report(wanted, Outcome.GOOD)


async def make_machines(cloud: Cloud, channel: Channel) -> list[SimulatedMachine]:
    """Every tenth cannot run the bad version."""
    connected = await cloud.connect()
    app = connected.app_client
    (organization,) = await app.list_organizations()
    location = await app.create_location(organization.id, "Hall 1")
    made = []
    for number in range(MACHINES):
        name = f"press-{number}"
        (part,) = await app.get_robot_parts(await app.new_robot(name, location.id))
        agent = UpdateAgent(channel, part.id, OLD)
        await agent.log_in(part.secret)
        made.append(SimulatedMachine(name, agent, "" if number % 10 else BAD))
    connected.close()
    return made


async def roll_out(cloud: Cloud, version: str) -> None:
    plan = RolloutPlan(stage_time=int(24 * HOUR * 1e6))
    now = cloud.context.now()
    await cloud.context.records.write(
        lambda tx: start_rollout(tx, "stable", Product.SERVER, version, plan, now)
    )


async def poll_for_days(
    cloud: Cloud, clock: ManualClock, machines: list[SimulatedMachine]
) -> RolloutStatus:
    """Let all machines poll at the same time for some days, until the rollout is over."""
    for _ in range(20):
        await asyncio.gather(*(each.poll() for each in machines))
        await review_rollouts(cloud.context)
        (status,) = await cloud.context.records.read(read_status)
        if status.rollout.state is not RolloutState.RUNNING:
            break
        await clock.advance(24 * HOUR)
    for _ in range(3):  # what was offered before the end
        await asyncio.gather(*(each.poll() for each in machines))
    (status,) = await cloud.context.records.read(read_status)
    return status


@pytest.mark.timeout(600)
async def test_bad_version_is_paused_and_the_fixed_one_reaches_everyone(tmp_path: Path) -> None:
    clock = ManualClock()
    async with run_cloud(tmp_path / "cloud", clock) as cloud:
        host, _, port = cloud.address.partition(":")
        channel = Channel(host, int(port))
        context = cloud.context
        for version in (OLD, BAD, FIXED):
            file = write_release(tmp_path, version)
            await store_release(context.records, context.blobs, file, context.now())
        machines = await make_machines(cloud, channel)

        await roll_out(cloud, BAD)
        status = await poll_for_days(cloud, clock, machines)
        rollout, counts = status.rollout, status.counts
        print(
            f"paused at {rollout.reach} %: {counts.good} updated, {counts.failed} failed; "
            f"{rollout.pause_reason}"
        )
        assert rollout.state is RolloutState.PAUSED
        assert rollout.reach < 100
        broken = {each.name for each in machines[::10]}
        for each in machines:
            # Once, and only those that were reached. The pause spares some of them.
            assert each.tried in ([], [BAD] if is_reached(rollout, each.agent.part) else [])
            is_updated = bool(each.tried) and each.name not in broken
            assert each.agent.server == (BAD if is_updated else OLD)
        tried = {each.name for each in machines if each.tried}
        assert counts.reported == len(tried)
        reason = re.match(r"(\d+) of (\d+) machines failed", rollout.pause_reason)
        assert reason is not None
        assert int(reason[1]) * 100 > rollout.max_failures * int(reason[2])
        assert {each.machine for each in status.failed} == tried & broken
        for failed in status.failed:
            assert failed.reason == f"{failed.machine} crashed: no module named fan"
            assert failed.running == OLD

        await roll_out(cloud, FIXED)
        status = await poll_for_days(cloud, clock, machines)
        assert status.rollout.state is RolloutState.COMPLETE
        assert Counter(each.agent.server for each in machines) == {FIXED: MACHINES}
        channel.close()
