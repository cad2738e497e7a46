"""What machines are told: changes of their configuration, their access and their secret."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.cloud.in_process_cloud import OpenCall, TwoTenantCloud
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.access_list import parse_access_list
from cogwork.auth.errors import RoleTooLow, Unauthenticated
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.core.errors import InvalidRequest, NotFound

OPERATOR, OWNER = CloudRole


def follow(part: str, **fields: Any) -> Struct:
    request = Struct()
    request.update({"id": part, **fields})
    return request


async def receive(call: OpenCall) -> dict[str, Any]:
    return dict(await call.receive())


async def edit(cloud: TwoTenantCloud, token: str, config: dict[str, Any]) -> None:
    request = pb.UpdateRobotPartRequest(id=cloud.mine.part, robot_config_json=json.dumps(config))
    await cloud.call("UpdateRobotPart", token, request)


async def test_changes_are_told_one_by_one(cloud: TwoTenantCloud) -> None:
    owner, part = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        first = await receive(call)
        assert set(first) == {"config", "access"}
        assert cloud.mine.part in cloud.context.presence.list_connected()
        await edit(cloud, owner, {"debug": True})
        second = await receive(call)
        assert second["config"] != first["config"]
        assert second["access"] == first["access"]
        grant = pb.Authorization(
            authorization_type="role",
            authorization_id="robot_operator",
            resource_type="robot",
            resource_id=cloud.mine.machine,
        )
        await cloud.call("CreateKey", owner, pb.CreateKeyRequest(name="k", authorizations=[grant]))
        third = await receive(call)
        assert third["access"] != first["access"]
    assert cloud.context.presence.list_connected() == []


async def test_changes_of_others_are_not_told(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    other = await cloud.log_in_part(cloud.other)
    async with cloud.open("Follow", other, follow(cloud.other.part)) as call:
        await receive(call)
        await edit(cloud, owner, {"debug": True})
        assert not call.has_reply()


async def test_next_secret_is_told_to_the_only_user_of_the_old_one(cloud: TwoTenantCloud) -> None:
    owner, part = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    create = pb.CreateRobotPartSecretRequest(part_id=cloud.mine.part)
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        assert "secret" not in await receive(call)
        await cloud.call("CreateRobotPartSecret", owner, create)
        assert (await receive(call))["secret"] == await cloud.read_secret(cloud.mine.part)
        async with cloud.open("Follow", part, follow(cloud.mine.part)) as second:
            assert "secret" not in await receive(second)
    # With the new secret, there is nothing to tell.
    part = await cloud.log_in_part()
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        assert "secret" not in await receive(call)


async def test_key_does_not_get_the_secret(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    local = await cloud.log_in_as(OWNER, ResourceType.MACHINE)
    create = pb.CreateRobotPartSecretRequest(part_id=cloud.mine.part)
    await cloud.call("CreateRobotPartSecret", owner, create)
    async with cloud.open("Follow", local, follow(cloud.mine.part)) as call:
        assert "secret" not in await receive(call)


async def test_removed_keys_are_told_at_once(cloud: TwoTenantCloud) -> None:
    owner, part = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    key_id, _ = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        first = await receive(call)
        await cloud.call("DeleteKey", owner, pb.DeleteKeyRequest(id=key_id))
        assert list((await receive(call))["ended"]) == [key_id]
        assert (await receive(call))["access"] != first["access"]


async def test_deleted_machine_is_not_followed(cloud: TwoTenantCloud) -> None:
    owner, part = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        await receive(call)
        await cloud.call("DeleteRobot", owner, pb.DeleteRobotRequest(id=cloud.mine.machine))
        with pytest.raises(Unauthenticated):
            await receive(call)


async def test_heartbeats_are_empty(cloud: TwoTenantCloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.cloud.machine.follow_service.FOLLOW_HEARTBEAT", 0.01)
    part = await cloud.log_in_part()
    async with cloud.open("Follow", part, follow(cloud.mine.part)) as call:
        await receive(call)
        assert await receive(call) == {}


async def test_wrong_clock_is_shown_to_the_owner(cloud: TwoTenantCloud) -> None:
    part = await cloud.log_in_part()
    wrong = cloud.clock.time() - 3 * 3600
    async with cloud.open("Follow", part, follow(cloud.mine.part, time=wrong)) as call:
        await receive(call)
    assert cloud.context.watch.list_notices(cloud.mine.part)


@pytest.mark.parametrize("method", ["Follow", "GetAccess"])
async def test_only_the_part_and_local_owner_keys_follow(
    cloud: TwoTenantCloud, method: str
) -> None:
    def ask(token: str) -> Any:
        own = cloud.mine.part
        request = follow(own) if method == "Follow" else StringValue(value=own)
        return cloud.call(method, token, request)

    assert await ask(await cloud.log_in_part())
    assert await ask(await cloud.log_in_as(OWNER, ResourceType.MACHINE))
    for token in (
        await cloud.log_in_as(OPERATOR, ResourceType.MACHINE),
        await cloud.log_in_as(OWNER),
    ):
        with pytest.raises(RoleTooLow):
            await ask(token)
    with pytest.raises(NotFound):
        await ask(await cloud.log_in_part(cloud.other))


async def test_access_list_has_the_keys_of_the_part_only(cloud: TwoTenantCloud) -> None:
    key_id, _ = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    other, _ = await cloud.create_key(OWNER, ResourceType.MACHINE, tenant=cloud.other)
    request = StringValue(value=cloud.mine.part)
    reply = await cloud.call("GetAccess", await cloud.log_in_part(), request)
    assert key_id in reply.value
    assert other not in reply.value
    assert parse_access_list(reply.value).entries


async def test_part_is_required(cloud: TwoTenantCloud) -> None:
    with pytest.raises(InvalidRequest, match="ID of a part is required"):
        await cloud.call("Follow", await cloud.log_in_part(), Struct())
