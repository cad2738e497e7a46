"""What machines call: their configuration, certificates, logs and requests to restart."""

from __future__ import annotations

import asyncio
import json
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from tests.support.cloud.in_process_cloud import (
    START,
    CloudTemplate,
    OpenCall,
    TwoTenantCloud,
    open_two_tenants,
)
from tests.support.waiting import count_sleepers, wait_until
from viam.gen.app.agent.v1 import agent_pb2
from viam.gen.app.v1 import app_pb2
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.common.v1.common_pb2 import LogEntry
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateToRequest

from cogwork.auth.errors import RoleTooLow, Unauthenticated
from cogwork.cloud.fleet.log_losses import list_losses
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.actor import ActorType
from cogwork.cloud.machine.log_intake import LogQuotaSpent
from cogwork.cloud.machine.log_quota import LogRates
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import PartRow
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound
from cogwork.core.limits.token_bucket import Rate
from cogwork.resource.messages.config_message import from_message
from cogwork.wire.messages.follow_method import ACCESS_METADATA
from cogwork.wire.table.retry_info import read_retry_delay

METHODS = ("Config", "Certificate", "Log", "NeedsRestart", "DeviceAgentConfig")
OPERATOR, OWNER = CloudRole
LOTS = Rate(1e9, 1e9)


def make_request(name: str, part: str) -> Any:
    if name == "DeviceAgentConfig":
        return agent_pb2.DeviceAgentConfigRequest(id=part)
    return getattr(pb, f"{name}Request")(id=part)


@pytest.mark.parametrize("name", METHODS)
async def test_only_the_part_and_local_owner_keys_act_as_it(
    cloud: TwoTenantCloud, name: str
) -> None:
    own = make_request(name, cloud.mine.part)
    for token in (await cloud.log_in_part(), await cloud.log_in_as(OWNER, ResourceType.MACHINE)):
        assert await cloud.call(name, token, own) is not None
    for role, kind in (
        (OPERATOR, ResourceType.MACHINE),
        (OWNER, ResourceType.LOCATION),
        (OWNER, ResourceType.ORGANIZATION),
    ):
        token = await cloud.log_in_as(role, kind)
        with pytest.raises(RoleTooLow):
            await cloud.call(name, token, own)
    for token in (
        await cloud.log_in_part(cloud.other),
        await cloud.log_in_as(OWNER, ResourceType.MACHINE, tenant=cloud.other),
    ):
        with pytest.raises(NotFound):
            await cloud.call(name, token, own)
    with pytest.raises(Unauthenticated):
        await cloud.call(name, "", own)


async def test_configuration_has_the_names_and_the_time(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in_part()
    async with cloud.open("Config", token, make_request("Config", cloud.mine.part)) as call:
        config = (await call.receive()).config
        assert parsedate_to_datetime(call.metadata["date"]).timestamp() == START
    assert (config.cloud.id, config.cloud.fqdn) == (cloud.mine.part, cloud.mine.host)
    assert config.cloud.primary_org_id == cloud.mine.organization
    assert config.cloud.machine_id == cloud.mine.machine
    assert config.cloud.location_secret
    assert not config.cloud.signaling_insecure


async def test_only_servers_without_an_access_list_get_logins(cloud: TwoTenantCloud) -> None:
    key_id, key = await cloud.create_key(OWNER, ResourceType.MACHINE)
    token, request = await cloud.log_in_part(), make_request("Config", cloud.mine.part)
    config = (await cloud.call("Config", token, request)).config
    assert key in str(config)
    metadata = dict([ACCESS_METADATA])
    config = (await cloud.call("Config", token, request, metadata=metadata)).config
    assert key not in str(config)
    assert key_id not in str(config)
    assert not config.cloud.location_secret


async def test_disabled_resources_are_sent_to_machines_that_know_what_it_means(
    cloud: TwoTenantCloud,
) -> None:
    sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake"}
    config = {"components": [sensor, {**sensor, "name": "off", "disabled": True}]}
    owner = await cloud.log_in_as(OWNER, ResourceType.MACHINE)
    change = app_pb2.UpdateRobotPartRequest(
        id=cloud.mine.part, robot_config_json=json.dumps(config)
    )
    await cloud.call("UpdateRobotPart", owner, change)
    token, request = await cloud.log_in_part(), make_request("Config", cloud.mine.part)
    others = (await cloud.call("Config", token, request)).config
    assert [each.name for each in others.components] == ["s"]
    ours = (await cloud.call("Config", token, request, metadata=dict([ACCESS_METADATA]))).config
    assert [each.get("disabled") for each in from_message(ours)["components"]] == [None, True]


async def test_keys_in_other_case_mean_the_same_in_the_cloud(cloud: TwoTenantCloud) -> None:
    config = {
        "Components": [
            {"Name": "s", "Type": "sensor", "Model": "fake", "Attributes": {"Readings": {"A": 1}}},
            {"name": "off", "type": "sensor", "model": "fake", "Disabled": True},
        ],
        "Modules": [
            {"Name": "m", "Executable_Path": "/m", "Env": {"Mode": "x"}, "Disabled": True},
            {"name": "n", "executable_path": "/n", "env": {"Mode": "x"}},
        ],
        "Jobs": [{"name": "j", "schedule": "9s", "resource": "s", "method": "X", "disabled": True}],
    }
    owner = await cloud.log_in_as(OWNER, ResourceType.MACHINE)
    change = app_pb2.UpdateRobotPartRequest(
        id=cloud.mine.part, robot_config_json=json.dumps(config)
    )
    await cloud.call("UpdateRobotPart", owner, change)
    token, request = await cloud.log_in_part(), make_request("Config", cloud.mine.part)
    ours = (await cloud.call("Config", token, request, metadata=dict([ACCESS_METADATA]))).config
    found = from_message(ours)
    assert [each.get("disabled") for each in found["components"]] == [None, True]
    assert found["components"][0]["attributes"] == {"Readings": {"A": 1}}
    assert [(each["name"], each["env"]) for each in found["modules"]] == [("n", {"Mode": "x"})]
    assert "jobs" not in found


async def test_what_a_machine_says_about_itself_is_shown(cloud: TwoTenantCloud) -> None:
    token, request = await cloud.log_in_part(), make_request("Config", cloud.mine.part)
    request.agent_info.host = "press.local"
    request.agent_info.platform = "linux/arm64"
    for _ in range(2):
        await cloud.call("Config", token, request)
    owner = await cloud.log_in_as(OWNER)
    asked = app_pb2.GetRobotPartRequest(id=cloud.mine.part)
    part = (await cloud.call("GetRobotPart", owner, asked)).part
    assert "press.local" in str(part.user_supplied_info)
    assert "linux/arm64" in str(part.user_supplied_info)


async def test_part_that_called_is_online_for_a_while(cloud: TwoTenantCloud) -> None:
    token, request = await cloud.log_in_part(), make_request("Config", cloud.mine.part)
    owner = await cloud.log_in_as(OWNER)
    asked = app_pb2.GetRobotPartRequest(id=cloud.mine.part)

    async def read() -> Any:
        return (await cloud.call("GetRobotPart", owner, asked)).part

    before = await read()
    assert not before.last_access.seconds
    await cloud.call("Config", token, request)
    await cloud.clock.advance(10)
    assert (await read()).last_access.seconds == START
    await cloud.context.presence.save(cloud.context.records)
    (row,) = await cloud.context.records.read(
        lambda tx: select(tx, PartRow, "WHERE id = ?", cloud.mine.part)
    )
    assert row.last_access_at == START * 1e6


async def test_certificate_has_every_name_of_the_part(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in_part()
    request = make_request("Certificate", cloud.mine.part)
    owner = await cloud.log_in_as(OWNER)
    rename = app_pb2.UpdateRobotPartRequest(id=cloud.mine.part, name="lathe")
    await cloud.call("UpdateRobotPart", owner, rename)
    reply = await cloud.call("Certificate", token, request)
    certificate, issuer = x509.load_pem_x509_certificates(reply.tls_certificate.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    found = names.value.get_values_for_type(x509.DNSName)
    assert f"{cloud.mine.part}.part.fleet.test" in found
    assert cloud.mine.host in found, "the former name"
    assert any(each.startswith("lathe.") for each in found)
    assert not any(cloud.other.part in each for each in found)
    certificate.verify_directly_issued_by(issuer)
    assert "PRIVATE KEY" in reply.tls_private_key


async def test_restart_is_requested_once(cloud: TwoTenantCloud) -> None:
    token, owner = await cloud.log_in_part(), await cloud.log_in_as(OPERATOR)
    request = make_request("NeedsRestart", cloud.mine.part)
    assert not (await cloud.call("NeedsRestart", token, request)).must_restart
    mark = app_pb2.MarkPartForRestartRequest(part_id=cloud.mine.part)
    await cloud.call("MarkPartForRestart", owner, mark)
    replies = [await cloud.call("NeedsRestart", token, request) for _ in range(2)]
    assert [each.must_restart for each in replies] == [True, False]
    assert replies[0].restart_check_interval.seconds == 30


async def log(cloud: TwoTenantCloud, token: str, *messages: str, level: str = "info") -> Any:
    entries = [LogEntry(message=each, level=level) for each in messages]
    for each in entries:
        each.time.FromMicroseconds(int(cloud.clock.time() * 1e6))
    return await cloud.call("Log", token, pb.LogRequest(id=cloud.mine.part, logs=entries))


async def read_log(cloud: TwoTenantCloud, token: str, **query: Any) -> list[str]:
    request = app_pb2.GetRobotPartLogsRequest(id=cloud.mine.part, **query)
    return [each.message for each in (await cloud.call("GetRobotPartLogs", token, request)).logs]


async def test_lines_are_stored(cloud: TwoTenantCloud) -> None:
    token, reader = await cloud.log_in_part(), await cloud.log_in_as(OPERATOR, ResourceType.MACHINE)
    await log(cloud, token)
    await log(cloud, token, "one", "two")
    await log(cloud, token, "wrong", level="error")
    assert await read_log(cloud, reader) == ["wrong", "two", "one"]
    assert await read_log(cloud, reader, errors_only=True) == ["wrong"]
    assert await read_log(cloud, reader, filter="TWO") == ["two"]
    assert await read_log(cloud, reader, limit=1) == ["wrong"]
    with pytest.raises(NotFound):
        await read_log(cloud, await cloud.log_in_as(OWNER, tenant=cloud.other))


async def test_ranges_end_and_begin_where_they_say(cloud: TwoTenantCloud) -> None:
    token, reader = await cloud.log_in_part(), await cloud.log_in_as(OPERATOR)
    for hour in range(3):
        await log(cloud, token, f"hour {hour}")
        await cloud.clock.advance(3600)
    assert await read_log(cloud, reader, range="90m") == ["hour 2"]
    assert await read_log(cloud, reader, range="9d") == ["hour 2", "hour 1", "hour 0"]
    with pytest.raises(InvalidRequest, match="is not a range"):
        await read_log(cloud, reader, range="10")


async def test_log_of_a_deleted_part_is_for_owners_of_the_organization(
    cloud: TwoTenantCloud,
) -> None:
    token = await cloud.log_in_part()
    await log(cloud, token, "kept")
    owner, operator = await cloud.log_in_as(OWNER), await cloud.log_in_as(OPERATOR)
    await cloud.call("DeleteRobot", owner, app_pb2.DeleteRobotRequest(id=cloud.mine.machine))
    assert await read_log(cloud, owner) == ["kept"]
    stranger = await cloud.log_in_as(OWNER, tenant=cloud.other)
    for each in (operator, stranger):
        with pytest.raises(NotFound):
            await read_log(cloud, each)
    with pytest.raises(Unauthenticated):
        await log(cloud, token, "late")


async def test_number_of_lines_at_once_is_limited(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in_part()
    await log(cloud, token, *("x" for _ in range(1000)))
    with pytest.raises(InvalidRequest, match="more than 1000 lines"):
        await log(cloud, token, *("x" for _ in range(1001)))


async def test_lines_over_the_quota_are_refused_and_counted(
    in_process_template: CloudTemplate, tmp_path: Path
) -> None:
    rates = LogRates(Rate(1, 5), LOTS, LOTS, LOTS)
    path = tmp_path / "cloud"
    async with open_two_tenants(in_process_template, path, log_rates=rates) as cloud:
        token = await cloud.log_in_part()
        await log(cloud, token, *"12345678")  # the last request may exceed the quota
        lines = pb.LogRequest(id=cloud.mine.part, logs=[LogEntry(message="9")] * 2)
        async with cloud.open("Log", token, lines) as call:
            with pytest.raises(LogQuotaSpent, match="quota of this part"):
                await call.receive()
            delay = read_retry_delay(call.metadata.items())
        assert delay is not None
        assert delay > 0
        context = cloud.context
        await cloud.plane.intake.losses.save(context.records)
        (loss,) = await context.records.read(list_losses)
        assert (loss.part_id, loss.refused, loss.dropped) == (cloud.mine.part, 2, 0)
        await cloud.clock.advance(delay)
        await log(cloud, token, "later")
        assert (await read_log(cloud, await cloud.log_in_as(OWNER)))[0] == "later"


async def test_lines_wait_and_are_not_stored_if_the_part_is_gone_then(
    in_process_template: CloudTemplate, tmp_path: Path
) -> None:
    rates = LogRates(LOTS, LOTS, Rate(10, 10), LOTS)
    path = tmp_path / "cloud"
    async with open_two_tenants(in_process_template, path, log_rates=rates) as cloud:
        token, owner = await cloud.log_in_part(), await cloud.log_in_as(OWNER)
        await log(cloud, token, *("x" for _ in range(25)))
        waiting = asyncio.ensure_future(log(cloud, token, "late"))
        await wait_until(lambda: count_sleepers(cloud.clock, 3) == 1)
        assert not waiting.done()
        await cloud.call("DeleteRobot", owner, app_pb2.DeleteRobotRequest(id=cloud.mine.machine))
        await cloud.clock.advance(3)
        with pytest.raises(CogworkError) as refused:
            await waiting
        assert refused.value.status in ("UNAUTHENTICATED", "NOT_FOUND")
        assert "late" not in await read_log(cloud, owner)


async def read_all(call: OpenCall) -> None:
    while await call.receive() is not None:
        pass


async def test_followers_get_lines_until_their_access_ends(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in_part()
    key_id, key = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    reader = await cloud.log_in(key_id, key)
    follow = app_pb2.TailRobotPartLogsRequest(id=cloud.mine.part, filter="good")
    async with cloud.open("TailRobotPartLogs", reader, follow) as call:
        while not call.has_reply():
            await log(cloud, token, "bad", "good")
        assert [each.message for each in (await call.receive()).logs] == ["good"]
        owner = await cloud.log_in_as(OWNER)
        await cloud.call("DeleteKey", owner, app_pb2.DeleteKeyRequest(id=key_id))
        with pytest.raises((Unauthenticated, NotFound)):
            await read_all(call)
    stranger = await cloud.log_in_as(OWNER, tenant=cloud.other)
    with pytest.raises(NotFound):
        await cloud.call("TailRobotPartLogs", stranger, follow)


async def test_secret_of_a_location_is_for_clients_of_its_machines(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    create = app_pb2.CreateLocationSecretRequest(location_id=cloud.mine.location)
    secret = (await cloud.call("CreateLocationSecret", owner, create)).auth.secrets[0].secret
    token = await cloud.log_in(cloud.mine.host, secret, ActorType.LOCATION)
    asks = AuthenticateToRequest(entity=cloud.mine.host)
    assert (await cloud.call("AuthenticateTo", token, asks)).access_token
    other = AuthenticateToRequest(entity=cloud.other.host)
    with pytest.raises(NotFound):
        await cloud.call("AuthenticateTo", token, other)
    with pytest.raises(NotFound):
        await cloud.call("Config", token, make_request("Config", cloud.mine.part))
    with pytest.raises(RoleTooLow):
        await cloud.call("GetRobotPart", token, app_pb2.GetRobotPartRequest(id=cloud.mine.part))
    with pytest.raises(Unauthenticated):
        await cloud.log_in(cloud.other.host, secret, ActorType.LOCATION)
