"""What agents ask and report: which version a part gets, and what follows from how it went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import write_release
from tests.support.cloud.in_process_cloud import TwoTenantCloud
from viam.gen.app.agent.v1 import agent_pb2 as pb
from viam.gen.app.v1 import app_pb2

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.commands.release_commands import CannotReadRelease, store_release
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.updates.releases import Release
from cogwork.cloud.updates.rollout import Rollout, RolloutState
from cogwork.cloud.updates.rollout_status import format_status, read_status
from cogwork.cloud.updates.rollout_supervisor import review_rollouts
from cogwork.cloud.updates.rollouts import RolloutPlan, list_newest, start_rollout
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import AGENT_TAG, Outcome, UpdateReport

SERVER = Product.SERVER
HOUR = 3_600_000_000


async def release(cloud: TwoTenantCloud, folder: Path, version: str) -> Release:
    file = write_release(folder, version)
    context = cloud.context
    return await store_release(context.records, context.blobs, file, context.now())


async def roll_out(cloud: TwoTenantCloud, version: str, plan: RolloutPlan) -> Rollout:
    now = cloud.context.now()
    return await cloud.context.records.write(
        lambda tx: start_rollout(tx, "stable", SERVER, version, plan, now)
    )


async def ask(
    cloud: TwoTenantCloud, running: str = "1.0.0", token: str = "", *, is_ours: bool = True
) -> Any:
    request = pb.DeviceAgentConfigRequest(id=cloud.mine.part)
    request.version_info.viam_server_running = running
    request.host_info.platform = "linux/amd64"
    if is_ours:
        request.host_info.tags.append(AGENT_TAG)
    return await cloud.call("DeviceAgentConfig", token or await cloud.log_in_part(), request)


async def report(cloud: TwoTenantCloud, outcome: Outcome, token: str = "", part: str = "") -> None:
    told = UpdateReport(SERVER, "2.0.0", outcome, part, reason="it does not start")
    await cloud.call("Report", token or await cloud.log_in_part(), told.to_struct())


async def newest(cloud: TwoTenantCloud) -> Rollout:
    (found,) = await cloud.context.records.read(list_newest)
    return found


ALL = RolloutPlan(stages=(100,))


async def test_part_gets_the_release_that_is_rolled_out(
    cloud: TwoTenantCloud, tmp_path: Path
) -> None:
    assert (await ask(cloud)).HasField("viam_server_update_info") is False
    made = await release(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", ALL)
    reply = await ask(cloud)
    info = reply.viam_server_update_info
    assert (info.version, info.sha256.hex()) == ("2.0.0", made.digest)
    assert info.url == f"https://fleet.test:443{made.path}"
    assert reply.check_interval.seconds == 60
    found = await cloud.request("GET", made.path)
    assert (found.status, len(found.body)) == (200, made.size)
    assert found.headers["content-type"] == "application/x-tar"
    assert (await cloud.request("GET", f"/releases/{made.digest}/other.tar")).status == 404
    assert (await cloud.request("GET", f"/releases/{'0' * 64}/{made.filename}")).status == 404


async def test_agent_of_another_make_is_offered_nothing(
    cloud: TwoTenantCloud, tmp_path: Path
) -> None:
    await release(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", ALL)
    reply = await ask(cloud, "0.98.0", is_ours=False)
    assert not reply.HasField("viam_server_update_info")
    assert not reply.HasField("agent_update_info")
    owner = await cloud.log_in_as(CloudRole.OWNER)
    asked = app_pb2.GetRobotPartRequest(id=cloud.mine.part)
    part = (await cloud.call("GetRobotPart", owner, asked)).part
    server = part.user_supplied_info["software"]["server"]
    assert server["running"] == "0.98.0"
    assert "install cogwork-agent there" in server["hindrance"]
    (status,) = await cloud.context.records.read(read_status)
    assert status.counts.offered == 0


async def test_version_that_runs_is_proved(cloud: TwoTenantCloud, tmp_path: Path) -> None:
    await release(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", ALL)
    await ask(cloud)
    (status,) = await cloud.context.records.read(read_status)
    assert (status.counts.waiting, status.counts.good) == (1, 0)
    await ask(cloud, running="2.0.0")
    (status,) = await cloud.context.records.read(read_status)
    assert (status.counts.waiting, status.counts.good) == (0, 1)
    assert "1 updated, 0 failed, 0 waiting" in format_status([status])
    assert status.as_json()["updated"] == 1


async def test_failure_is_shown_and_pauses_the_rollout(
    cloud: TwoTenantCloud, tmp_path: Path
) -> None:
    await release(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", RolloutPlan(stages=(100,), max_failures=0))
    await ask(cloud)
    await report(cloud, Outcome.WAITING)
    (status,) = await cloud.context.records.read(read_status)
    assert [each.outcome for each in status.waiting] == [Outcome.WAITING]
    await report(cloud, Outcome.ROLLED_BACK)
    (status,) = await cloud.context.records.read(read_status)
    (failed,) = status.failed
    assert (failed.part_id, failed.reason, failed.organization) == (
        cloud.mine.part,
        "it does not start",
        "mine",
    )
    assert "failed   press, part press-main (runs 1.0.0): it does not start" in format_status(
        [status]
    )
    # It is not offered there again.
    assert (await ask(cloud)).HasField("viam_server_update_info") is False
    owner = await cloud.log_in_as(CloudRole.OWNER)
    asked = app_pb2.GetRobotPartRequest(id=cloud.mine.part)
    part = (await cloud.call("GetRobotPart", owner, asked)).part
    assert "it does not start" in str(part.user_supplied_info)


async def test_rollouts_are_reviewed_from_time_to_time(
    cloud: TwoTenantCloud, tmp_path: Path
) -> None:
    await release(cloud, tmp_path, "2.0.0")
    await roll_out(cloud, "2.0.0", RolloutPlan(stages=(1, 100), stage_time=HOUR))
    before = await newest(cloud)
    await review_rollouts(cloud.context)
    assert await newest(cloud) == before
    assert before.state is RolloutState.RUNNING


async def test_settings_of_the_agent_are_passed_on(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(CloudRole.OWNER)
    text = (
        '{"agent": {"advanced_settings": {"debug": true}, "network_configuration": 7, '
        '"version_control": {"viam-server": "beta"}}}'
    )
    edit = app_pb2.UpdateRobotPartRequest(id=cloud.mine.part, robot_config_json=text)
    await cloud.call("UpdateRobotPart", owner, edit)
    reply = await ask(cloud)
    assert dict(reply.advanced_settings) == {"debug": True}
    assert not reply.network_configuration.fields
    asked = app_pb2.GetRobotPartRequest(id=cloud.mine.part)
    part = (await cloud.call("GetRobotPart", owner, asked)).part
    assert "the channel beta has no version" in str(part.user_supplied_info)


async def test_reports_are_for_the_own_part(cloud: TwoTenantCloud) -> None:
    with pytest.raises(NotFound):
        await report(cloud, Outcome.GOOD, await cloud.log_in_part(cloud.other), cloud.mine.part)
    wide = await cloud.log_in_as(CloudRole.OWNER)
    with pytest.raises(RoleTooLow):
        await report(cloud, Outcome.GOOD, wide, cloud.mine.part)
    local = await cloud.log_in_as(CloudRole.OWNER, ResourceType.MACHINE)
    await report(cloud, Outcome.GOOD, local, cloud.mine.part)
    with pytest.raises((NotFound, InvalidRequest)):
        await report(cloud, Outcome.GOOD, local)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"product": "toaster"}, "the product in the manifest.json"),
        ({"version": "latest"}, "the version in the manifest.json"),
        ({"platform": "x"}, "the platform in the manifest.json"),
        ({"minimum_version": "x"}, "the minimum_version in the manifest.json"),
        ({"signature": None}, "the release is not signed.*make release RELEASE_KEY"),
        ({"signature": b""}, "the release is not signed"),
    ],
    ids=str,
)
async def test_release_that_cannot_be_used(
    cloud: TwoTenantCloud, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    fields: dict[str, Any] = {"version": "2.0.0", **change}
    path = write_release(tmp_path, **fields)
    with pytest.raises(CannotReadRelease, match=message):
        await store_release(cloud.context.records, cloud.context.blobs, path, 0)


async def test_file_that_is_not_a_release(cloud: TwoTenantCloud, tmp_path: Path) -> None:
    for content in (b"", b"x" * 2000):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(CannotReadRelease, match="not a release"):
            await store_release(cloud.context.records, cloud.context.blobs, tmp_path / "file", 0)
    with pytest.raises(CannotReadRelease, match="cannot read"):
        await store_release(cloud.context.records, cloud.context.blobs, tmp_path / "none", 0)
