"""Updates: what the SDK's generated client of agents gets from the cloud, and what it reports."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.agent.update_agent import UpdateAgent
from tests.support.archives import write_release
from tests.support.cloud.fleet import DOMAIN, Cloud, make_part, run_cloud
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.app.viam_client import ViamClient
from viam.gen.app.agent.v1 import agent_pb2 as pb

from cogwork.cloud.commands.release_commands import store_release
from cogwork.cloud.control_plane.periodic_task import PeriodicTasks
from cogwork.cloud.fleet.part_software import describe_software
from cogwork.cloud.registry.blob_sweep import sweep_blobs
from cogwork.cloud.serve import list_maintenance
from cogwork.cloud.updates.rollout_status import RolloutStatus, read_status
from cogwork.cloud.updates.rollouts import (
    RolloutPlan,
    pause_rollout,
    resume_rollout,
    start_rollout,
)
from cogwork.core.clock import ManualClock
from cogwork.core.errors import InvalidRequest
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import ROLLBACK, Outcome, read_rollbacks

KEEP = pb.UpdateInfo()
AT_ONCE = RolloutPlan(stages=(100,))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def cloud(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Cloud]:
    async with run_cloud(tmp_path / "cloud", clock) as running:
        yield running


@pytest.fixture
async def client(cloud: Cloud) -> AsyncIterator[ViamClient]:
    connected = await cloud.connect()
    yield connected
    connected.close()


@pytest.fixture
def app(client: ViamClient) -> AppClient:
    return client.app_client


@pytest.fixture
async def channel(cloud: Cloud) -> AsyncIterator[Channel]:
    host, _, port = cloud.address.partition(":")
    connected = Channel(host, int(port))
    yield connected
    connected.close()


@pytest.fixture
async def agent(app: AppClient, channel: Channel) -> UpdateAgent:
    made = UpdateAgent(channel, await make_part(app))
    await made.log_in((await app.get_robot_part(made.part)).secret)
    return made


async def add(cloud: Cloud, directory: Path, *versions: str, product: str = "server") -> None:
    context = cloud.context
    for version in versions:
        file = write_release(directory, version, product)
        await store_release(context.records, context.blobs, file, context.now())


async def roll_out(cloud: Cloud, version: str, plan: RolloutPlan = AT_ONCE) -> None:
    now = cloud.context.now()
    await cloud.context.records.write(
        lambda tx: start_rollout(tx, "stable", Product.SERVER, version, plan, now)
    )


async def status_of(cloud: Cloud) -> RolloutStatus:
    (found,) = await cloud.context.records.read(read_status)
    return found


async def software_of(cloud: Cloud, part: str) -> Any:
    return await cloud.context.records.read(lambda tx: describe_software(tx, part))


async def test_without_a_rollout_a_part_keeps_what_it_has(cloud: Cloud, agent: UpdateAgent) -> None:
    reply = await agent.poll()
    assert reply.check_interval.seconds == 60
    assert not reply.HasField("agent_update_info")
    assert not reply.HasField("viam_server_update_info")
    found = await software_of(cloud, agent.part)
    assert found["server"]["running"] == "1.0.0"
    assert found["server"]["platform"] == "linux/amd64"
    agent.server = ""
    assert await agent.poll_server() == KEEP


async def test_channel_without_a_version_is_a_hindrance(
    cloud: Cloud, app: AppClient, agent: UpdateAgent
) -> None:
    await configure(app, agent.part, version_control={"viam-server": "betaa"})
    assert await agent.poll_server() == KEEP
    hindrance = (await software_of(cloud, agent.part))["server"]["hindrance"]
    assert hindrance == "the channel betaa has no version of server; roll one out"


async def test_channel_leads_to_a_release(cloud: Cloud, agent: UpdateAgent, tmp_path: Path) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    content = (tmp_path / "cogwork-server-2.0.0-linux-amd64.tar").read_bytes()
    digest = hashlib.sha256(content)
    assert await agent.poll_server() == pb.UpdateInfo(
        filename="cogwork-server-2.0.0-linux-amd64.tar",
        url=f"https://{DOMAIN}:443/releases/{digest.hexdigest()}/"
        "cogwork-server-2.0.0-linux-amd64.tar",
        version="2.0.0",
        sha256=digest.digest(),
        format=pb.PACKAGE_FORMAT_RAW,
    )
    assert (await software_of(cloud, agent.part))["server"]["hindrance"] == ""


async def test_agent_of_version_0_1_is_known_by_its_library(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    agent.tags = []
    assert (await agent.poll_server()).version == "2.0.0"


async def configure(app: AppClient, part: str, **section: Any) -> None:
    await app.update_robot_part(part, "press", {"agent": section})


async def test_pinned_version_ignores_rollouts(
    cloud: Cloud, app: AppClient, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "1.5.0", "2.0.0")
    await roll_out(cloud, "2.0.0")
    await configure(app, agent.part, version_control={"viam-server": "1.5.0"})
    assert (await agent.poll_server()).version == "1.5.0"
    await configure(app, agent.part, version_control={"viam-server": "1.7.0"})
    assert await agent.poll_server() == KEEP
    hindrance = (await software_of(cloud, agent.part))["server"]["hindrance"]
    assert hindrance == "there is no release of server 1.7.0"


@pytest.mark.parametrize(
    "url",
    ["https://builds.test/a/server.tar?key=1", "http://10.0.0.7/server.tar", "file:///server.tar"],
)
async def test_custom_url_is_passed_on(app: AppClient, agent: UpdateAgent, url: str) -> None:
    await configure(app, agent.part, version_control={"viam-server": url})
    assert await agent.poll_server() == pb.UpdateInfo(
        filename="server.tar", url=url, version="customURL"
    )


@pytest.mark.parametrize("source", ["ftp://builds.test/a.tar", "https://", "Nightly", 7])
async def test_source_that_is_none_changes_nothing(
    cloud: Cloud, app: AppClient, agent: UpdateAgent, source: Any
) -> None:
    await configure(app, agent.part, version_control={"viam-server": source})
    assert await agent.poll_server() == KEEP
    hindrance = (await software_of(cloud, agent.part))["server"]["hindrance"]
    assert hindrance.startswith("agent.version_control.viam-server is")


async def test_part_of_another_platform_keeps_what_it_has(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    agent.platform = "linux/arm64"
    assert await agent.poll_server() == KEEP
    hindrance = (await software_of(cloud, agent.part))["server"]["hindrance"]
    assert hindrance == "server 2.0.0 is not released for linux/arm64, only for linux/amd64"
    assert (await status_of(cloud)).counts.offered == 0


async def test_settings_of_the_agent_are_passed_on(app: AppClient, agent: UpdateAgent) -> None:
    section: dict[str, Any] = {
        "advanced_settings": {"debug": True, "viam_server_start_timeout_minutes": 5.0},
        "network_configuration": {"hotspot_prefix": "press"},
        "additional_networks": {"hall": {"ssid": "Hall 1", "priority": 3.0}},
        "system_configuration": {"logging_journald_system_max_use_megabytes": 64.0},
    }
    (organization,) = await app.list_organizations()
    fragment = await app.create_fragment(organization.id, "agents", {"agent": section})
    await app.update_robot_part(agent.part, "press", {"fragments": [fragment.id]})
    reply = await agent.poll()
    assert {name: MessageToDict(getattr(reply, name)) for name in section} == section


async def test_failed_part_is_told_to_go_back_and_the_report_says_why(
    cloud: Cloud, app: AppClient, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "1.0.0", "2.0.0", "2.0.1")
    await roll_out(cloud, "2.0.0")
    assert (await agent.poll_server()).version == "2.0.0"
    agent.server = "2.0.0"
    await agent.report("2.0.0", Outcome.ROLLED_BACK, "the server did not\nstart within 60 s")
    # An agent that cannot take itself back is told to.
    info = await agent.poll_server()
    assert (info.version, info.url.rpartition("/")[2]) == (
        "1.0.0",
        "cogwork-server-1.0.0-linux-amd64.tar",
    )
    status = await status_of(cloud)
    assert status.rollout.pause_reason == "1 of 1 machines failed (100.0 %, and 5 % are allowed)"
    (failed,) = status.as_json()["failed_parts"]
    assert (failed["machine"], failed["part_id"], failed["outcome"], failed["since"]) == (
        *("press", agent.part, "rolled_back", "1970-01-12T13:46:40+00:00"),
    )
    assert failed["reason"] == "the server did not\nstart within 60 s"
    part = await app.get_robot_part(agent.part)
    assert part.user_supplied_info is not None
    shown: Any = part.user_supplied_info["software"]
    assert shown["server"]["last_report"]["outcome"] == "rolled_back"
    last = (await software_of(cloud, agent.part))["server"]["last_report"]
    assert (last["version"], last["outcome"]) == ("2.0.0", "rolled_back")
    await roll_out(cloud, "2.0.1")
    assert (await agent.poll_server()).version == "2.0.1"


async def test_offer_says_whether_the_part_goes_back(
    cloud: Cloud, app: AppClient, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "1.0.0", "2.0.0")
    await roll_out(cloud, "2.0.0")
    # What an owner writes there is not a mark.
    await configure(app, agent.part, advanced_settings={ROLLBACK: ["server"], "debug": True})
    reply = await agent.poll()
    assert reply.viam_server_update_info.version == "2.0.0"
    assert MessageToDict(reply.advanced_settings) == {"debug": True}
    agent.server = "2.0.0"
    assert not read_rollbacks((await agent.poll()).advanced_settings)
    with pytest.raises(InvalidRequest, match=r"older than 2\.0\.0, which stable has"):
        await roll_out(cloud, "1.0.0")
    await roll_out(cloud, "1.0.0", AT_ONCE._replace(is_rollback=True))
    reply = await agent.poll()
    assert reply.viam_server_update_info.version == "1.0.0"
    assert read_rollbacks(reply.advanced_settings) == {Product.SERVER}


async def test_part_that_reported_a_failure_may_go_back(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "1.0.0", "2.0.0")
    await roll_out(cloud, "2.0.0")
    await agent.poll()
    await agent.report("2.0.0", Outcome.ROLLED_BACK, "it did not start")
    agent.server = "2.0.0"
    reply = await agent.poll()
    assert reply.viam_server_update_info.version == "1.0.0"
    assert read_rollbacks(reply.advanced_settings) == {Product.SERVER}


async def test_version_below_the_minimum_of_a_release_is_not_rolled_out(
    cloud: Cloud, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "1.9.0", "1.10.0")
    context = cloud.context
    for version, minimum in (("2.0.0", "1.10.0"), ("2.0.1", "1.9.1")):
        file = write_release(tmp_path, version, minimum_version=minimum)
        await store_release(context.records, context.blobs, file, context.now())
    with pytest.raises(InvalidRequest, match=r"the minimum_version of 2\.0\.0, so machines"):
        await roll_out(cloud, "1.9.0", AT_ONCE._replace(is_rollback=True))
    await roll_out(cloud, "1.10.0")


async def test_agent_that_does_not_report_proves_the_version_by_running_it(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    await agent.poll()
    assert (await status_of(cloud)).counts.waiting == 1
    agent.server = "2.0.0"
    await agent.poll()
    counts = (await status_of(cloud)).counts
    assert (counts.good, counts.waiting) == (1, 0)


async def test_waiting_part_says_what_it_waits_for(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    await agent.poll()
    await agent.report("2.0.0", Outcome.WAITING, "the maintenance sensor says no")
    (waiting,) = (await status_of(cloud)).waiting
    assert waiting.reason == "the maintenance sensor says no"
    await agent.report("2.0.0", Outcome.GOOD)
    await agent.report("2.0.0", Outcome.WAITING, "late")
    assert (await status_of(cloud)).counts.good == 1


async def test_part_that_had_the_version_counts_only_if_it_fails(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    agent.server = "2.0.0"
    await agent.poll()
    await agent.report("2.0.0", Outcome.GOOD)
    assert (await status_of(cloud)).counts.offered == 0
    await agent.report("2.0.0", Outcome.ROLLED_BACK, "3 crashes in 10 minutes")
    assert (await status_of(cloud)).counts.failed == 1


async def test_paused_rollout_takes_back_an_offer(
    cloud: Cloud, agent: UpdateAgent, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0")
    context = cloud.context
    versions = [(await agent.poll_server()).version]
    await context.records.write(
        lambda tx: pause_rollout(tx, "stable", Product.SERVER, context.now())
    )
    versions.append((await agent.poll_server()).version)
    await context.records.write(
        lambda tx: resume_rollout(tx, "stable", Product.SERVER, context.now())
    )
    versions.append((await agent.poll_server()).version)
    assert versions == ["2.0.0", "", "2.0.0"]


async def test_supervisor_begins_stages_by_itself(
    cloud: Cloud, clock: ManualClock, tmp_path: Path
) -> None:
    await add(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", RolloutPlan(stage_time=3_600_000_000))
    tasks = PeriodicTasks(clock, cloud.health)
    tasks.start(*list_maintenance(cloud.context))
    async with asyncio.timeout(60):
        while (await status_of(cloud)).rollout.share < 100:
            await clock.advance(60)
    await tasks.aclose()
    assert clock.time() >= 1_000_000 + 3 * 3600


async def test_releases_are_kept(tmp_path: Path) -> None:
    later = ManualClock(time.time() + 3 * 86400)
    async with run_cloud(tmp_path / "cloud", later) as cloud:
        await add(cloud, tmp_path, "2.0.0")
        blobs = cloud.context.blobs
        file = write_release(tmp_path, "3.0.0")

        async def read() -> AsyncIterator[bytes]:
            yield file.read_bytes()

        await blobs.write(read(), 1 << 20, lambda *_: None)
        assert await sweep_blobs(cloud.context) == 1


async def test_only_the_part_and_its_owners_ask_and_report(
    cloud: Cloud, app: AppClient, agent: UpdateAgent, client: ViamClient
) -> None:
    (organization,) = await app.list_organizations()
    (location,) = await app.list_locations(organization.id)
    other = await app.new_robot("other", location.id)
    (other_part,) = await app.get_robot_parts(other)
    role = APIKeyAuthorization("operator", "organization", organization.id)
    key, key_id = await app.create_key(organization.id, [role], "operator")
    operator = await cloud.connect(key_id, key)
    stranger_org = await app.create_organization("Stranger")
    role = APIKeyAuthorization("owner", "organization", stranger_org.id)
    key, key_id = await app.create_key(stranger_org.id, [role], "stranger")
    stranger = await cloud.connect(key_id, key)
    callers = [
        (dict(agent.metadata), other_part.id, Status.NOT_FOUND),
        ({}, agent.part, Status.UNAUTHENTICATED),
        (dict(operator._metadata), agent.part, Status.PERMISSION_DENIED),
        (dict(stranger._metadata), agent.part, Status.NOT_FOUND),
        (dict(stranger._metadata), "", Status.NOT_FOUND),
    ]
    for metadata, part, expected in callers:
        agent.metadata = metadata
        with pytest.raises(GRPCError) as refused:
            await agent.poll(part)
        assert refused.value.status is (expected if part else Status.NOT_FOUND)
        with pytest.raises(GRPCError) as refused:
            await agent.report("2.0.0", Outcome.GOOD, part=part)
        assert refused.value.status is expected
    agent.metadata = dict(client._metadata)
    with pytest.raises(GRPCError, match="gives access to more than this machine"):
        await agent.poll()
    machine = (await app.get_robot_part(agent.part)).robot
    role = APIKeyAuthorization("owner", "robot", machine)
    key, key_id = await app.create_key(organization.id, [role], "machine")
    owner = await cloud.connect(key_id, key)
    agent.metadata = dict(owner._metadata)
    await agent.poll()
    await agent.report("2.0.0", Outcome.GOOD, part=agent.part)
    owner.close()
    operator.close()
    stranger.close()


@pytest.mark.parametrize(
    "change",
    [{"product": "engine"}, {"outcome": "fine"}, {"version": ""}, {"version": 2}, {"product": {}}],
)
async def test_report_that_makes_no_sense_is_refused(
    agent: UpdateAgent, change: dict[str, Any]
) -> None:
    message = Struct()
    message.update({"product": "server", "version": "2.0.0", "outcome": "good", **change})
    with pytest.raises(GRPCError) as refused:
        await agent.send_report(message)
    assert refused.value.status is Status.INVALID_ARGUMENT
