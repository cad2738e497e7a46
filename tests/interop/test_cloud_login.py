"""Logins at the cloud: with every type of credential, until it is removed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.interop.test_joined_machine import SENSOR, new_machine
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1 import app_pb2
from viam.gen.app.v1.app_grpc import AppServiceStub
from viam.gen.app.v1.robot_pb2 import ConfigRequest
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub, ExternalAuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import (
    AuthenticateRequest,
    AuthenticateToRequest,
    Credentials,
)
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest, ShutdownRequest
from viam.proto.app import RobotPart

from cogwork.cloud.fleet.keys import list_keys
from cogwork.cloud.fleet.locations import list_locations
from cogwork.cloud.fleet.machines import list_robots_for_organization
from cogwork.cloud.fleet.organizations import list_organizations
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Row, Transaction, Value
from cogwork.resource.config_message import from_message
from cogwork.wire.follow_method import ACCESS_METADATA


@dataclass
class Owner:
    cloud: Cloud
    app: AppClient
    metadata: dict[str, str]
    channel: Channel
    part: Any
    organization: str

    async def log_in(self, entity: str, kind: str, payload: str) -> dict[str, str]:
        """Return the metadata of later calls."""
        credentials = Credentials(type=kind, payload=payload)
        request = AuthenticateRequest(entity=entity, credentials=credentials)
        token = (await AuthServiceStub(self.channel).Authenticate(request)).access_token
        return {"authorization": f"Bearer {token}"}

    async def create_key(self, role: Any, kind: Any, resource: str) -> tuple[str, str]:
        authorization = APIKeyAuthorization(role, kind, resource)
        key, key_id = await self.app.create_key(self.organization, [authorization], "new")
        return key_id, key

    async def authenticate_to(self, host: str, metadata: dict[str, str]) -> str:
        stub = ExternalAuthServiceStub(self.channel)
        request = AuthenticateToRequest(entity=host)
        reply = await stub.AuthenticateTo(request, metadata=metadata)
        return str(reply.access_token)


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Owner]:
    async with run_cloud(tmp_path) as cloud:
        connected = await cloud.connect()
        app = connected.app_client
        part: RobotPart = await app.get_robot_part(await make_part(app))  # type: ignore[assignment]
        (organization,) = await app.list_organizations()
        host, _, port = cloud.address.partition(":")
        channel = Channel(host, int(port))
        yield Owner(cloud, app, dict(connected._metadata), channel, part, organization.id)
        channel.close()
        connected.close()


async def refusal(call: Awaitable[Any]) -> Status:
    with pytest.raises(GRPCError) as refused:
        await call
    return refused.value.status


async def test_location_secret_is_for_clients_of_its_machines(owner: Owner) -> None:
    location = await owner.app.get_location(owner.part.location_id)
    assert not location.auth.secrets
    auth = await owner.app.create_location_secret(owner.part.location_id)
    secret = auth.secrets[0].secret
    login = await owner.log_in(owner.part.fqdn, "robot-location-secret", secret)
    assert await owner.authenticate_to(owner.part.fqdn, login)
    stub = AppServiceStub(owner.channel)
    request = app_pb2.GetRobotPartRequest(id=owner.part.id)
    assert await refusal(stub.GetRobotPart(request, metadata=login)) is Status.PERMISSION_DENIED
    create = app_pb2.CreateOrganizationRequest(name="mine")
    refused = stub.CreateOrganization(create, metadata=login)
    assert await refusal(refused) is Status.PERMISSION_DENIED
    other = await owner.app.get_robot_part(await make_part(owner.app))
    assert await refusal(owner.authenticate_to(other.fqdn, login)) is Status.NOT_FOUND
    for entity in (other.fqdn, "unknown", ""):
        failed = owner.log_in(entity, "robot-location-secret", secret)
        assert await refusal(failed) is Status.UNAUTHENTICATED


async def test_failed_logins_are_limited(owner: Owner) -> None:
    key_id, key = await owner.create_key("operator", "robot", owner.part.robot)
    statuses = [await refusal(owner.log_in(key_id, "api-key", "wrong")) for _ in range(12)]
    assert statuses == [Status.UNAUTHENTICATED] * 10 + [Status.RESOURCE_EXHAUSTED] * 2
    assert await owner.log_in(key_id, "api-key", key), "a correct key is always accepted"
    assert await owner.log_in(owner.cloud.key_id, "api-key", owner.cloud.key)
    too_long = owner.log_in("x" * 1000, "api-key", "x")
    assert await refusal(too_long) is Status.INVALID_ARGUMENT
    assert await refusal(owner.log_in(key_id, "other", key)) is Status.INVALID_ARGUMENT


async def delete_key(owner: Owner, key_id: str) -> None:
    await owner.app.delete_key(key_id)


async def rotate_key(owner: Owner, key_id: str) -> None:
    await owner.app.rotate_key(key_id)


@pytest.mark.parametrize("remove", [delete_key, rotate_key])
async def test_removed_key_ends_at_once(
    owner: Owner, remove: Callable[[Owner, str], Awaitable[None]]
) -> None:
    key_id, key = await owner.create_key("operator", "robot", owner.part.robot)
    login = await owner.log_in(key_id, "api-key", key)
    stub, request = AppServiceStub(owner.channel), app_pb2.GetRobotRequest(id=owner.part.robot)
    for _ in range(3):
        await stub.GetRobot(request, metadata=login)
    await remove(owner, key_id)
    assert await refusal(stub.GetRobot(request, metadata=login)) is Status.UNAUTHENTICATED


async def test_secret_of_a_deleted_machine_ends_at_once(owner: Owner) -> None:
    machine = PartClient(owner.cloud, owner.part.id)
    await machine.log_in(owner.part.secret)
    request = ConfigRequest(id=owner.part.id)
    await machine.call("Config", request)
    await owner.app.delete_robot(owner.part.robot)
    assert await refusal(machine.call("Config", request)) is Status.UNAUTHENTICATED
    machine.channel.close()


async def test_replaced_secret_of_a_part_ends_at_once(owner: Owner) -> None:
    machine = PartClient(owner.cloud, owner.part.id)
    await machine.log_in(owner.part.secret)
    request = ConfigRequest(id=owner.part.id)
    await machine.call("Config", request)
    changed = await owner.app.create_robot_part_secret(owner.part.id)
    old = next(each for each in changed.secrets or [] if each.secret == owner.part.secret)
    await machine.call("Config", request)
    await owner.app.delete_robot_part_secret(owner.part.id, old.id)
    assert await refusal(machine.call("Config", request)) is Status.UNAUTHENTICATED
    machine.channel.close()


async def test_only_keys_of_a_machine_act_as_the_machine(owner: Owner) -> None:
    """One that opens more must not lie on a machine."""
    machine = PartClient(owner.cloud, owner.part.id)
    key_id, key = await owner.create_key("operator", "robot", owner.part.robot)
    machine._metadata = await owner.log_in(key_id, "api-key", key)
    refused = machine.call("Config", ConfigRequest(id=owner.part.id))
    assert await refusal(refused) is Status.PERMISSION_DENIED
    key_id, key = await owner.create_key("owner", "robot", owner.part.robot)
    machine._metadata = await owner.log_in(key_id, "api-key", key)
    await machine.call("Config", ConfigRequest(id=owner.part.id))
    roles = [
        APIKeyAuthorization("owner", "robot", owner.part.robot),
        APIKeyAuthorization("operator", "location", owner.part.location_id),
    ]
    key, key_id = await owner.app.create_key(owner.organization, roles, "wide")
    machine._metadata = await owner.log_in(key_id, "api-key", key)
    refused = machine.call("Config", ConfigRequest(id=owner.part.id))
    assert await refusal(refused) is Status.PERMISSION_DENIED
    machine.channel.close()


async def test_keys_of_the_machine_itself_stay(owner: Owner) -> None:
    handler = {
        "type": "api-key",
        "config": {"keys": ["own"], "own": "secret"},
        "roles": {"own": "viewer"},
    }
    config: Any = {"auth": {"handlers": [handler]}}
    await owner.app.update_robot_part(owner.part.id, "press", config)
    machine = PartClient(owner.cloud, owner.part.id)
    await machine.log_in(owner.part.secret)
    reply = await machine.call("Config", ConfigRequest(id=owner.part.id))
    # A server that knows no roles would take the viewer for an owner.
    assert "handlers" not in from_message(reply.config)["auth"]
    assert 'key "own" is left out' in reply.config.overwrite_fragment_status[0].error
    machine._metadata |= [ACCESS_METADATA]
    reply = await machine.call("Config", ConfigRequest(id=owner.part.id))
    (found,) = from_message(reply.config)["auth"]["handlers"]
    assert found["config"] == {"keys": ["own"], "own": "secret", "roles": {"own": "viewer"}}
    machine.channel.close()


async def test_machine_accepts_tokens_of_its_cloud(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        app = machine.client
        part = await app.get_robot_part(machine.part)
        (organization,) = await app.list_organizations()
        neighbor = await app.new_robot("press", part.location_id)
        roles = [APIKeyAuthorization("operator", "robot", each) for each in (part.robot, neighbor)]
        key, key_id = await app.create_key(organization.id, roles, "operator")
        operator = await machine.cloud.connect(key_id, key)
        host, _, port = machine.cloud.address.partition(":")
        channel = Channel(host, int(port))
        request = AuthenticateToRequest(entity=part.fqdn)
        stub = ExternalAuthServiceStub(channel)
        reply = await stub.AuthenticateTo(request, metadata=operator._metadata)
        (its_part,) = await app.get_robot_parts(neighbor)
        request = AuthenticateToRequest(entity=its_part.fqdn)
        for_neighbor = await stub.AuthenticateTo(request, metadata=operator._metadata)
        # It is a token for the part, whatever its name is.
        await app.update_robot_part(machine.part, "saw")
        channel.close()
        operator.close()
        login = {"authorization": f"Bearer {reply.access_token}"}
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            direct = Channel("localhost", server.port)
            robot = RobotServiceStub(direct)
            names = await robot.ResourceNames(ResourceNamesRequest(), metadata=login)
            assert [each.name for each in names.resources] == ["scale"]
            refused = robot.Shutdown(ShutdownRequest(), metadata=login)
            assert await refusal(refused) is Status.PERMISSION_DENIED
            for token in (f"{reply.access_token[:-8]}AAAAAAAA", for_neighbor.access_token):
                other = {"authorization": f"Bearer {token}"}
                refused = robot.ResourceNames(ResourceNamesRequest(), metadata=other)
                assert await refusal(refused) is Status.UNAUTHENTICATED
            direct.close()


class CountedTransaction:
    """A transaction that counts its queries."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.queries = 0

    def query(self, sql: str, *values: Value) -> Sequence[Row]:
        self.queries += 1
        return self._tx.query(sql, *values)

    def execute(self, sql: str, *values: Value) -> int:
        return self._tx.execute(sql, *values)


async def test_lists_take_a_few_queries_however_long_they_are(owner: Owner) -> None:
    parent = owner.part.location_id
    for number in range(9):
        parent = (await owner.app.create_location(owner.organization, f"{number}", parent)).id
        machine = await owner.app.new_robot(f"machine {number}", parent)
        await owner.create_key("operator", "robot", machine)
    context = owner.cloud.context
    call = context.make_call(Actor(ActorType.API_KEY, owner.cloud.key_id))
    organization = owner.organization
    lists: list[tuple[Callable[..., Any], Any, str, int]] = [
        (list_organizations, app_pb2.ListOrganizationsRequest(), "organizations", 1),
        (
            list_locations,
            app_pb2.ListLocationsRequest(organization_id=organization),
            "locations",
            10,
        ),
        (
            list_robots_for_organization,
            app_pb2.ListRobotsForOrgRequest(org_id=organization),
            "robots",
            10,
        ),
        (list_keys, app_pb2.ListKeysRequest(org_id=organization), "api_keys", 10),
    ]
    for answer, request, field, count in lists:

        def work(tx: Transaction, answer: Any = answer, request: Any = request) -> tuple[Any, int]:
            counted = CountedTransaction(tx)
            return answer(counted, call, request), counted.queries

        reply, queries = await context.records.read(work)
        assert len(getattr(reply, field)) == count
        assert queries <= 5, f"{answer.__name__} made {queries} queries"


async def test_list_shows_what_is_inherited(owner: Owner) -> None:
    inner = (await owner.app.create_location(owner.organization, "in", owner.part.location_id)).id
    machine = await owner.app.new_robot("inner", inner)
    apart = (await owner.app.create_location(owner.organization, "apart")).id
    await owner.app.new_robot("apart", apart)
    key_id, key = await owner.create_key("operator", "location", owner.part.location_id)
    connected = await owner.cloud.connect(key_id, key)
    app = connected.app_client
    seen = await app.list_locations(owner.organization)
    assert {each.id for each in seen} == {owner.part.location_id, inner}
    assert not any(each.auth.secrets for each in seen)
    robots = await AppServiceStub(owner.channel).ListRobotsForOrg(
        app_pb2.ListRobotsForOrgRequest(org_id=owner.organization), metadata=connected._metadata
    )
    assert {each.id for each in robots.robots} == {owner.part.robot, machine}
    connected.close()
