"""Modules and ML models in the registry, with the SDK's unmodified fleet client."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.archives import make_archive
from tests.support.cloud.fleet import make_part
from tests.support.cloud.in_process_cloud import (
    ConnectedClient,
    InProcessCloud,
)
from viam.app.app_client import APIKeyAuthorization, AppClient
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.packages.v1.packages_grpc import PackageServiceStub
from viam.gen.app.v1.app_grpc import AppServiceStub
from viam.gen.app.v1.robot_grpc import RobotServiceStub
from viam.gen.app.v1.robot_pb2 import AgentInfo, ConfigRequest, RobotConfig
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials
from viam.proto.app import Model, ModuleFileInfo, RenameRegistryItemRequest, Visibility
from viam.proto.app.packages import PackageType

from cogwork.cloud.registry.blob_sweep import sweep_blobs
from cogwork.resource.messages.config_message import from_message

ARCHIVE = make_archive(**{"bin/run.sh": b"#!/bin/sh\n", "meta.json": b"{}"})
MODEL = Model(api="rdk:component:motor", model="acme:drive:fast")


@pytest.fixture
async def connected(empty_cloud: InProcessCloud) -> ConnectedClient:
    return await empty_cloud.connect()


@pytest.fixture
def client(connected: ConnectedClient) -> AppClient:
    return connected.app_client


async def organization_of(client: AppClient) -> str:
    return (await client.list_organizations())[0].id


async def make_module(client: AppClient, *versions: str, platform: str = "linux/amd64") -> str:
    module, _ = await client.create_module(await organization_of(client), "drive")
    await client.update_module(module, "https://docs", "Drives.", [MODEL], "./bin/run.sh")
    for version in versions:
        await upload(client, module, version, platform)
    return module


async def upload(client: AppClient, module: str, version: str, platform: str, *tags: str) -> str:
    info = ModuleFileInfo(module_id=module, version=version, platform=platform, platform_tags=tags)
    return await client.upload_module_file(info, ARCHIVE)


async def read(client: ConnectedClient, part: str, platform: str, *tags: str) -> RobotConfig:
    """Return the configuration that a machine of this platform gets."""
    agent = AgentInfo(platform=platform, platform_tags=tags)
    secret = (await client.app_client.get_robot_part(part)).secret
    login = AuthenticateRequest(
        entity=part, credentials=Credentials(type="robot-secret", payload=secret)
    )
    token = (await AuthServiceStub(client.channel).Authenticate(login)).access_token
    reply = await RobotServiceStub(client.channel).Config(
        ConfigRequest(id=part, agent_info=agent), metadata={"authorization": f"Bearer {token}"}
    )
    found: RobotConfig = reply.config
    return found


def use(module: str, version: str = "latest") -> dict[str, Any]:
    return {
        "modules": [{"name": "drive", "type": "registry", "module_id": module, "version": version}]
    }


async def test_module_has_everything_that_was_written(client: AppClient) -> None:
    module = await make_module(client, "1.0.0")
    organization = await organization_of(client)
    assert module == f"{organization}:drive"
    found = await client.get_module(module)
    assert (found.module_id, found.name, found.organization_id) == (module, "drive", organization)
    assert (found.url, found.description) == ("https://docs", "Drives.")
    assert (list(found.models), found.entrypoint) == ([MODEL], "./bin/run.sh")
    assert found.visibility == Visibility.VISIBILITY_PRIVATE
    (version,) = found.versions
    assert (version.version, version.entrypoint) == ("1.0.0", "./bin/run.sh")
    assert list(version.models) == [MODEL]
    assert [each.platform for each in version.files] == ["linux/amd64"]
    assert await client.list_modules(organization) == [found]


async def test_machine_gets_the_version_for_its_platform(
    client: AppClient, connected: ConnectedClient
) -> None:
    module = await make_module(client, "1.0.0", "1.1.0", "2.0.0-rc1")
    await upload(client, module, "1.0.0", "linux/arm64")
    await upload(client, module, "1.0.0", "linux/arm64", "pi:5")
    part = await make_part(client)
    await client.update_robot_part(part, "press", use(module))
    expected = {
        ("linux/amd64",): "1.1.0-linux-amd64",
        ("linux/arm64",): "1.0.0-linux-arm64",
        ("linux/arm64", "pi:5", "more"): "1.0.0-linux-arm64-",
    }
    for platform, version in expected.items():
        config = await read(connected, part, *platform)
        (package,) = config.packages
        assert package.version.startswith(version)
        assert package.type == "module"
        assert config.modules[0].path == f"${{packages.module.{package.name}}}/bin/run.sh"
        assert not config.modules[0].status.error
    # What the machine does next: it asks for exactly this package.
    request = packages_pb2.GetPackageRequest(
        id=package.package,
        version=package.version,
        type=PackageType.PACKAGE_TYPE_MODULE,
        include_url=True,
    )
    found = await PackageServiceStub(connected.channel).GetPackage(
        request, metadata=connected.metadata
    )
    assert found.package.info.platform == "linux/arm64"
    assert found.package.url
    # Our own configuration format keeps the placeholder.
    assert from_message(config)["modules"][0]["executable_path"].endswith("/bin/run.sh")


async def test_development_build_of_a_module_is_run_instead(
    client: AppClient, connected: ConnectedClient
) -> None:
    module = await make_module(client, "1.0.0")
    part = await make_part(client)
    config = use(module)
    build = {"reload_enabled": True, "reload_path": "/root/builds/sensors.tar.gz"}
    config["modules"][0] |= build
    await client.update_robot_part(part, "press", config)
    found = await read(connected, part, "linux/amd64")
    assert (found.modules[0].type, found.modules[0].path) == ("local", build["reload_path"])
    assert not found.packages
    config["modules"][0]["reload_enabled"] = False
    await client.update_robot_part(part, "press", config)
    found = await read(connected, part, "linux/amd64")
    assert (found.modules[0].type, len(found.packages)) == ("registry", 1)


async def test_mistake_of_one_module_is_in_its_status(
    client: AppClient, connected: ConnectedClient
) -> None:
    module = await make_module(client, "1.0.0")
    part = await make_part(client)
    wrong = [
        ("unknown:module", "latest", "the registry has no module"),
        (module, "3.0.0", "there is no version 3.0.0"),
        (module, "1.0.0", "not available for darwin/arm64; it is for linux/amd64"),
    ]
    for name, version, reason in wrong:
        config = {**use(name, version), "components": [{"name": "arm"}]}
        await client.update_robot_part(part, "press", config)
        found = await read(connected, part, "darwin/arm64")
        assert reason in found.modules[0].status.error
        assert [each.name for each in found.components] == ["arm"]
        assert not found.packages


async def test_new_version_reaches_machines_that_use_the_latest(
    client: AppClient, connected: ConnectedClient
) -> None:
    module = await make_module(client, "1.0.0")
    part = await make_part(client)
    fragment = await client.create_fragment(await organization_of(client), "f", use(module))
    await client.update_robot_part(part, "press", {"fragments": [fragment.id]})
    first = await read(connected, part, "linux/amd64")
    await upload(client, module, "1.0.1", "linux/amd64")
    second = await read(connected, part, "linux/amd64")
    assert [each.packages[0].version for each in (first, second)] == [
        "1.0.0-linux-amd64",
        "1.0.1-linux-amd64",
    ]


async def test_version_of_a_module_never_changes(client: AppClient) -> None:
    module = await make_module(client, "1.0.0")
    with pytest.raises(GRPCError, match="never changes") as refused:
        await upload(client, module, "1.0.0", "linux/amd64")
    assert refused.value.status is Status.ALREADY_EXISTS
    for version, platform in (("latest", "linux/amd64"), ("1.0", "any"), ("1.0.1", "../x")):
        with pytest.raises(GRPCError) as refused:
            await upload(client, module, version, platform)
        assert refused.value.status is Status.INVALID_ARGUMENT


@pytest.mark.parametrize("entrypoint", ["/bin/sh", "../x", "a/../../b", "${environment.HOME}"])
async def test_entrypoint_is_inside_of_the_module(client: AppClient, entrypoint: str) -> None:
    module = await make_module(client)
    with pytest.raises(GRPCError, match="entrypoint"):
        await client.update_module(module, "", "", [], entrypoint)


async def test_module_of_others_is_used_only_if_it_is_public(
    empty_cloud: InProcessCloud, client: AppClient
) -> None:
    module = await make_module(client, "1.0.0", platform="any")
    other = (await client.create_organization("Other")).id
    key, key_id = await client.create_key(
        other, [APIKeyAuthorization("owner", "organization", other)], "other"
    )
    stranger = await empty_cloud.connect(key_id, key)
    theirs = stranger.app_client
    part = await make_part(theirs)
    await theirs.update_robot_part(part, "press", use(module))
    assert "not shared" in (await read(stranger, part, "linux/amd64")).modules[0].status.error
    assert await theirs.list_modules(other) == []
    with pytest.raises(GRPCError) as refused:
        await theirs.get_module(module)
    assert refused.value.status is Status.NOT_FOUND
    await client.update_module(module, "", "", [MODEL], "run.sh", public=True)
    assert [each.module_id for each in await theirs.list_modules(other)] == [module]
    config = await read(stranger, part, "linux/amd64")
    assert [each.version for each in config.packages] == ["1.0.0-any"]
    for attempt in (
        upload(theirs, module, "6.6.6", "any"),
        theirs.update_module(module, "", "", [], ""),
        theirs.delete_registry_item(module),
    ):
        with pytest.raises(GRPCError) as refused:
            await attempt
        assert refused.value.status is Status.NOT_FOUND


async def test_model_is_an_item_of_the_registry(
    client: AppClient, connected: ConnectedClient
) -> None:
    organization = await organization_of(client)
    kind = PackageType.PACKAGE_TYPE_ML_MODEL
    await client.create_registry_item(organization, "detector", kind)
    item = f"{organization}:detector"
    await client.update_registry_item(item, kind, "Finds cats.", Visibility.VISIBILITY_PRIVATE)
    stub = PackageServiceStub(connected.channel)
    for version in ("2026-01-01T10-00-00", "2026-01-02T10-00-00"):
        info = packages_pb2.PackageInfo(
            organization_id=organization, name="detector", version=version, type=kind
        )
        async with stub.CreatePackage.open(metadata=connected.metadata) as stream:
            await stream.send_message(packages_pb2.CreatePackageRequest(info=info))
            archive = make_archive(model=version.encode())
            await stream.send_message(packages_pb2.CreatePackageRequest(contents=archive), end=True)
            await stream.recv_message()
    found = await client.get_registry_item(item)
    assert (found.item_id, found.type, found.description) == (item, kind, "Finds cats.")
    versions = found.ml_model_metadata.detailed_versions
    assert [each.version for each in versions] == ["2026-01-01T10-00-00", "2026-01-02T10-00-00"]
    assert await client.list_registry_items(organization, [kind], [], [], []) == [found]
    module = PackageType.PACKAGE_TYPE_MODULE
    assert await client.list_registry_items(organization, [module], [], [], []) == []
    part = await make_part(client)
    package = {"name": "cats", "package": f"{organization}/detector", "version": "latest"}
    packages: list[Any] = [package, {**package, "name": "dogs", "version": "1"}]
    await client.update_robot_part(part, "press", {"packages": packages})
    good, bad = (await read(connected, part, "linux/amd64")).packages
    assert (good.version, good.status.error) == ("2026-01-02T10-00-00", "")
    assert "there is no version 1" in bad.status.error


async def test_item_is_deprecated_renamed_and_deleted(
    client: AppClient, connected: ConnectedClient
) -> None:
    organization = await organization_of(client)
    module = await make_module(client, "1.0.0")
    await client.deprecate_registry_item(module, "use another one")
    assert (await client.get_registry_item(module)).deprecated_status.message == "use another one"
    assert await client.list_modules(organization) == []
    await client.undeprecate_registry_item(module)
    await client.deprecate_registry_item_version(module, "1.0.0", "it has a bug")
    (version,) = (await client.get_module(module)).versions
    assert version.deprecated_status.message == "it has a bug"
    await client.undeprecate_registry_item_version(module, "1.0.0")
    part = await make_part(client)
    await client.update_robot_part(part, "press", use(module))
    rename = RenameRegistryItemRequest(item_id=module, new_name="motion")
    stub = AppServiceStub(connected.channel)
    for attempt in (
        client.delete_registry_item(module),
        stub.RenameRegistryItem(rename, metadata=connected.metadata),
    ):
        with pytest.raises(GRPCError, match="remove it from them first") as refused:
            await attempt
        assert refused.value.status is Status.FAILED_PRECONDITION
    await client.update_robot_part(part, "press", {"debug": True})
    renamed = await stub.RenameRegistryItem(rename, metadata=connected.metadata)
    assert renamed.item.item_id == f"{organization}:motion"
    await client.delete_registry_item(renamed.item.item_id)
    with pytest.raises(GRPCError) as refused:
        await client.get_module(renamed.item.item_id)
    assert refused.value.status is Status.NOT_FOUND
    # Machines may have its versions, so another module cannot take its name.
    with pytest.raises(GRPCError) as refused:
        await client.create_module(organization, "motion")
    assert refused.value.status is Status.ALREADY_EXISTS


async def test_content_of_deleted_packages_is_removed_a_day_later(
    empty_cloud: InProcessCloud, client: AppClient, tmp_path: Path
) -> None:
    module = await make_module(client, "1.0.0")
    digest = hashlib.sha256(ARCHIVE).hexdigest()
    file = tmp_path / "cloud" / "blobs" / digest[:2] / digest[2:]
    old = time.time() - 25 * 3600
    os.utime(file, (old, old))
    assert await sweep_blobs(empty_cloud.context) == 0
    await client.delete_registry_item(module)
    os.utime(file)
    assert await sweep_blobs(empty_cloud.context) == 0
    os.utime(file, (old, old))
    assert await sweep_blobs(empty_cloud.context) == 1
    assert not file.exists()
