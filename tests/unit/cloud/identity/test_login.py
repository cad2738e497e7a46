"""Logins: with every type of credential, how often they may fail, and when they end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.support.cloud.in_process_cloud import TwoTenantCloud
from tests.support.waiting import count_sleepers, wait_until
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.robot_pb2 import ConfigRequest

from cogwork.auth.errors import InvalidLogin, TooManyAttempts, Unauthenticated
from cogwork.auth.refusal_delay import DELAY
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.actor import ActorType
from cogwork.core.errors import CogworkError
from cogwork.resource.messages.config_message import from_message
from cogwork.wire.messages.follow_method import ACCESS_METADATA

OPERATOR, OWNER = CloudRole


async def read_machine(cloud: TwoTenantCloud, token: str) -> Any:
    return await cloud.call("GetRobot", token, pb.GetRobotRequest(id=cloud.mine.machine))


async def read_config(cloud: TwoTenantCloud, token: str, **options: Any) -> Any:
    request = ConfigRequest(id=cloud.mine.part)
    return (await cloud.call("Config", token, request, **options)).config


@pytest.mark.parametrize("request_type", [pb.DeleteKeyRequest, pb.RotateKeyRequest])
async def test_removed_key_ends_at_once(cloud: TwoTenantCloud, request_type: Any) -> None:
    key_id, key = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    token, owner = await cloud.log_in(key_id, key), await cloud.log_in_as(OWNER)
    for _ in range(2):
        await read_machine(cloud, token)
    name = request_type.DESCRIPTOR.name.removesuffix("Request")
    await cloud.call(name, owner, request_type(id=key_id))
    with pytest.raises(Unauthenticated):
        await read_machine(cloud, token)
    with pytest.raises(Unauthenticated):
        await cloud.log_in(key_id, key)


async def test_replaced_secret_of_a_part_ends_when_it_is_deleted(cloud: TwoTenantCloud) -> None:
    owner, token = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    old = await cloud.read_secret(cloud.mine.part)
    create = pb.CreateRobotPartSecretRequest(part_id=cloud.mine.part)
    await cloud.call("CreateRobotPartSecret", owner, create)
    await read_config(cloud, token)
    delete = pb.DeleteRobotPartSecretRequest(part_id=cloud.mine.part, secret_id=cloud.mine.secret)
    await cloud.call("DeleteRobotPartSecret", owner, delete)
    with pytest.raises(Unauthenticated):
        await read_config(cloud, token)
    with pytest.raises(Unauthenticated):
        await cloud.log_in(cloud.mine.part, old, ActorType.PART)
    await read_config(cloud, await cloud.log_in_part())


async def test_failed_logins_are_limited_but_a_correct_key_is_accepted(
    cloud: TwoTenantCloud,
) -> None:
    key_id, key = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    for _ in range(10):
        with pytest.raises(Unauthenticated):
            await cloud.log_in(key_id, "wrong")
    refused = asyncio.ensure_future(cloud.log_in(key_id, "wrong"))
    await wait_until(lambda: count_sleepers(cloud.clock, DELAY) == 1)  # it is delayed
    await cloud.clock.advance(DELAY)
    with pytest.raises(TooManyAttempts):
        await refused
    assert await cloud.log_in(key_id, key)
    assert await cloud.log_in(*cloud.owner)


async def test_login_that_cannot_be_one(cloud: TwoTenantCloud) -> None:
    kind: Any = "password"
    for entity, login_kind in (("x" * 257, ActorType.API_KEY), (cloud.owner[0], kind)):
        with pytest.raises(InvalidLogin):
            await cloud.log_in(entity, cloud.owner[1], login_kind)
    with pytest.raises(Unauthenticated):
        await cloud.log_in("x" * 256, "wrong")


@pytest.mark.parametrize("authorization", ["", "Basic x", "Bearer ", "Bearer x", "bearer x"])
async def test_call_without_a_token_is_refused(cloud: TwoTenantCloud, authorization: str) -> None:
    metadata = {"authorization": authorization} if authorization else {}
    with pytest.raises(Unauthenticated):
        await cloud.call("ListOrganizations", "", pb.ListOrganizationsRequest(), metadata=metadata)


async def test_changed_token_is_refused(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in(*cloud.owner)
    other = f"{token[:-8]}AAAAAAAA"
    with pytest.raises(Unauthenticated):
        await read_machine(cloud, other)
    await read_machine(cloud, await cloud.log_in_as(OPERATOR))


async def test_list_shows_what_a_role_reaches(cloud: TwoTenantCloud) -> None:
    owner, organization = await cloud.log_in_as(OWNER), cloud.mine.organization

    async def create(name: str, parent: str = "") -> str:
        request = pb.CreateLocationRequest(organization_id=organization, name=name)
        if parent:
            request.parent_location_id = parent
        return str((await cloud.call("CreateLocation", owner, request)).location.id)

    inner, apart = await create("in", cloud.mine.location), await create("apart")
    for location in (inner, apart):
        await cloud.call("NewRobot", owner, pb.NewRobotRequest(name="saw", location=location))
    token = await cloud.log_in_as(OPERATOR, ResourceType.LOCATION)
    asked = pb.ListLocationsRequest(organization_id=organization)
    found = (await cloud.call("ListLocations", token, asked)).locations
    assert {each.id for each in found} == {cloud.mine.location, inner}
    assert not any(each.auth.secrets for each in found)
    robots = pb.ListRobotsForOrgRequest(org_id=organization)
    shown = (await cloud.call("ListRobotsForOrg", token, robots)).robots
    assert {each.location for each in shown} == {cloud.mine.location, inner}


async def test_keys_of_the_machine_itself_stay(cloud: TwoTenantCloud) -> None:
    owner, token = await cloud.log_in_as(OWNER), await cloud.log_in_part()
    text = (
        '{"auth": {"handlers": [{"type": "api-key", "config": {"keys": ["own"], "own": "secret"}, '
        '"roles": {"own": "viewer"}}]}}'
    )
    edit = pb.UpdateRobotPartRequest(id=cloud.mine.part, robot_config_json=text)
    await cloud.call("UpdateRobotPart", owner, edit)
    config = await read_config(cloud, token)
    # A server that knows no roles would take the viewer for an owner.
    assert "handlers" not in from_message(config)["auth"]
    assert 'key "own" is left out' in config.overwrite_fragment_status[0].error
    config = await read_config(cloud, token, metadata=dict([ACCESS_METADATA]))
    (handler,) = from_message(config)["auth"]["handlers"]
    assert handler["config"] == {"keys": ["own"], "own": "secret", "roles": {"own": "viewer"}}


async def test_machines_use_no_service_of_people(cloud: TwoTenantCloud) -> None:
    with pytest.raises(CogworkError) as refused:
        await read_machine(cloud, await cloud.log_in_part())
    assert refused.value.status == "PERMISSION_DENIED"
