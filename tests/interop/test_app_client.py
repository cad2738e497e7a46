"""The SDK's unmodified fleet client against our cloud."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.archives import make_archive
from tests.support.cloud.fleet import Cloud, make_part, run_cloud
from tests.support.machine.running import start_server
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.v1.app_pb2 import ModuleFileInfo
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials

from cogwork.wire.table.request_limits import MAX_UPLOAD_SIZE

PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    async with run_cloud(tmp_path) as running:
        yield running


@pytest.fixture
async def client(cloud: Cloud) -> AsyncIterator[AppClient]:
    connected = await cloud.connect()
    yield connected.app_client
    connected.close()


async def test_wrong_key_is_refused(cloud: Cloud) -> None:
    host, _, port = cloud.address.partition(":")
    channel = Channel(host, int(port))
    credentials = Credentials(type="api-key", payload="wrong")
    request = AuthenticateRequest(entity=cloud.key_id, credentials=credentials)
    with pytest.raises(GRPCError) as refused:
        await AuthServiceStub(channel).Authenticate(request)
    channel.close()
    assert refused.value.status is Status.UNAUTHENTICATED


async def test_machine_from_nothing(client: AppClient) -> None:
    (organization,) = await client.list_organizations()
    assert organization.name == "Acme"
    assert await client.get_organization(organization.id) == organization
    location = await client.create_location(organization.id, "Hall 1")
    assert [each.id for each in await client.list_locations(organization.id)] == [location.id]
    machine = await client.new_robot("Press 4", location.id)
    (listed,) = await client.list_robots(location.id)
    assert (listed.id, listed.name, listed.location) == (machine, "Press 4", location.id)
    (part,) = await client.get_robot_parts(machine)
    assert (part.name, part.main_part, part.location_id) == ("Press 4-main", True, location.id)
    assert part.secret == (part.secrets or [])[0].secret


async def test_edits_have_a_history_that_can_be_restored(client: AppClient) -> None:
    part = await make_part(client)
    configs: list[dict[str, Any]] = [{"components": [{"name": f"c{n}"}]} for n in range(3)]
    for config in configs:
        await client.update_robot_part(part, "press", config)
    history = await client.get_robot_part_history(part)
    before = [each.old for each in history if each.old is not None]
    assert [each.robot_config for each in before] == [configs[1], configs[0], {}]
    assert [each.secret for each in before] == ["", "", ""]
    await client.update_robot_part(part, "press", before[1].robot_config)
    assert (await client.get_robot_part(part)).robot_config == configs[0]
    assert len(await client.get_robot_part_history(part)) == 4


async def test_of_two_edits_at_once_one_is_told(client: AppClient) -> None:
    part = await make_part(client)
    known = (await client.get_robot_part(part)).last_updated
    await client.update_robot_part(part, "press", {"debug": True}, known)
    with pytest.raises(GRPCError) as refused:
        await client.update_robot_part(part, "press", {"debug": False}, known)
    assert refused.value.status is Status.FAILED_PRECONDITION
    assert (await client.get_robot_part(part)).robot_config == {"debug": True}


async def test_operator_sees_a_machine_and_does_not_change_it(
    cloud: Cloud, client: AppClient
) -> None:
    part = await make_part(client)
    machine = (await client.get_robot_part(part)).robot
    (organization,) = await client.list_organizations()
    key, key_id = await client.create_key(
        organization.id, [APIKeyAuthorization("operator", "robot", machine)], "viewer"
    )
    connected = await cloud.connect(key_id, key)
    operator = connected.app_client
    seen = await operator.get_robot_part(part)
    assert (seen.id, seen.secret, seen.secrets) == (part, "", [])
    with pytest.raises(GRPCError) as refused:
        await operator.update_robot_part(part, "press", {})
    assert refused.value.status is Status.PERMISSION_DENIED
    await client.delete_key(key_id)
    with pytest.raises(GRPCError) as refused:
        await operator.get_robot_part(part)
    assert refused.value.status is Status.UNAUTHENTICATED
    connected.close()


async def upload_large_module(client: AppClient) -> None:
    """Upload one whose archive the SDK sends in one message, and larger ones, which are refused."""
    (organization,) = await client.list_organizations()
    module, _ = await client.create_module(organization.id, "large")
    content = random.Random(1).randbytes(39_900_000)
    archive = make_archive(**{"run.sh": b"", "meta.json": b"{}", "weights": content})
    info = ModuleFileInfo(module_id=module, version="1.0.0", platform="linux/arm64")
    assert len(archive) > 39_900_000
    assert await client.upload_module_file(info, archive)

    other = ModuleFileInfo(module_id=module, version="1.0.1", platform="linux/arm64")
    with pytest.raises(GRPCError, match="larger than max") as refused:
        await client.upload_module_file(other, bytes(MAX_UPLOAD_SIZE + 1))
    assert refused.value.status is Status.RESOURCE_EXHAUSTED
    with pytest.raises(GRPCError, match="at most") as refused:
        await client.create_organization("x" * 40_000_000)
    assert refused.value.status is Status.RESOURCE_EXHAUSTED


async def test_program_creates_and_serves_a_cloud(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "cloud")]
    async with start_server(["init", *data, "--organization", "Acme"], program=PROGRAM) as init:
        assert await init.exit_code() == 0
    key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
    key = (await init.out.wait_for(r"key: +(\S+)"))[1]
    serve = ["serve", *data, "--address", "localhost:0"]
    async with start_server(serve, program=PROGRAM) as server:
        await server.wait_until_serving()
        cloud = Cloud(f"localhost:{server.port}", key_id, key)
        connected = await cloud.connect()
        (organization,) = await connected.app_client.list_organizations()
        assert organization.name == "Acme"
        await upload_large_module(connected.app_client)
        connected.close()
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    assert (tmp_path / "cloud").stat().st_mode & 0o777 == 0o700
    async with start_server(["init", *data], program=PROGRAM) as again:
        assert await again.exit_code() == 1
    assert "this directory already has a cloud" in again.err.text
