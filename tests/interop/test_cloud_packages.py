"""Packages of a machine from its own cloud: an ML model and a module, also while it is away."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grpclib.client import Channel
from tests.interop.test_packages import Owner
from tests.support.archives import make_archive
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.modular import poll
from tests.support.machine.running import DEADLINE, Server, run_server
from tests.support.models.onnx_models import add_constant
from viam.gen.app.packages.v1.packages_pb2 import PackageType
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import (
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    PackageStatus,
    ResourceStatus,
)
from viam.proto.app import Model, ModuleFileInfo
from viam.rpc.dial import AuthenticatedChannel
from viam.services.mlmodel import MLModelClient

from cogwork.core.versions.platform_name import PLATFORM


@pytest.fixture
async def cloud(tmp_path: Path) -> CloudProcess:
    found = CloudProcess(tmp_path / "cloud")
    await found.initialize()
    return found


@contextlib.asynccontextmanager
async def connect_owner(cloud: CloudProcess) -> AsyncIterator[Owner]:
    client = await cloud.client().connect()
    try:
        (organization,) = await client.app_client.list_organizations()
        yield Owner(cloud.client(), client, organization.id)
    finally:
        client.close()


async def save(owner: Owner, part: str, config: dict[str, Any]) -> None:
    await owner.client.app_client.update_robot_part(part, "press", config)


@contextlib.asynccontextmanager
async def connect_machine(server: Server, cloud: CloudProcess) -> AsyncIterator[Channel]:
    """Log in with a key of the cloud."""
    channel = AuthenticatedChannel("localhost", server.port)
    request = AuthenticateRequest(
        entity=cloud.key_id, credentials=Credentials(type="api-key", payload=cloud.key)
    )
    try:
        found = await AuthServiceStub(channel).Authenticate(request, timeout=DEADLINE)
        channel._metadata = {"authorization": f"Bearer {found.access_token}"}
        yield channel
    finally:
        channel.close()


async def status_of(machine: Channel) -> GetMachineStatusResponse:
    found: GetMachineStatusResponse = await RobotServiceStub(machine).GetMachineStatus(
        GetMachineStatusRequest(), timeout=DEADLINE
    )
    return found


async def wait_until_ready(machine: Channel, name: str) -> None:
    async def find() -> list[tuple[int, str]]:
        resources = (await status_of(machine)).resources
        return [(each.state, each.error) for each in resources if each.name.name == name]

    await poll(find, lambda found: found == [(ResourceStatus.STATE_READY, "")])


async def infer(machine: Channel) -> set[float]:
    """Return what the model makes of zeros."""
    found = await MLModelClient("adder", machine).infer({"x": np.zeros(2, np.float32)})
    return {float(each) for output in found.values() for each in output.ravel()}


def adder(owner: Owner, version: str) -> dict[str, Any]:
    return {
        "packages": [
            {
                "name": "adder",
                "package": f"{owner.organization}/adder",
                "version": version,
                "type": "ml_model",
            }
        ],
        "services": [
            {
                "name": "adder",
                "api": "rdk:service:mlmodel",
                "model": "onnx_cpu",
                "attributes": {"model_path": "${packages.ml_model.adder}/model.onnx"},
            }
        ],
    }


async def test_model_of_the_cloud_is_used_also_without_it(
    cloud: CloudProcess, tmp_path: Path
) -> None:
    async with cloud.serve(), connect_owner(cloud) as owner:
        for version, number in (("1.0", 1.0), ("2.0", 2.0)):
            content = make_archive(**{"model.onnx": add_constant(number).SerializeToString()})
            await owner.upload("adder", version, content)
        config = tmp_path / "machine.json"
        await cloud.join(config)
        file = {**json.loads(config.read_text()), "network": {"bind_address": "localhost:0"}}
        file["cloud"]["refresh_interval"] = "1s"
        part = file["cloud"]["id"]
        await save(owner, part, adder(owner, "1.0"))
        async with (
            run_server(file, tmp_path, arguments=["-no-tls"]) as server,
            connect_machine(server, cloud) as machine,
        ):
            await wait_until_ready(machine, "adder")
            assert await infer(machine) == {1.0}
            (package,) = (await status_of(machine)).packages
            assert (package.name, package.version) == ("adder", "1.0")
            assert package.type == PackageType.PACKAGE_TYPE_ML_MODEL
            assert package.state == PackageStatus.STATE_READY
            assert package.bytes_downloaded == package.total_bytes > 0
            await save(owner, part, adder(owner, "latest"))
            await poll(lambda: infer(machine), lambda found: found == {2.0})
            store = tmp_path / "home" / "packages" / "data" / "ml_model"

            async def count_versions() -> int:
                return len([*store.glob(f"{owner.organization}-adder-*/")])

            await poll(count_versions, lambda count: count == 1)
    # The cloud is away.
    async with (
        run_server(file, tmp_path, arguments=["-no-tls"]) as server,
        connect_machine(server, cloud) as machine,
    ):
        await wait_until_ready(machine, "adder")
        assert await infer(machine) == {2.0}


async def test_module_of_the_registry_runs(cloud: CloudProcess, tmp_path: Path) -> None:
    async with cloud.serve(), connect_owner(cloud) as owner:
        app = owner.client.app_client
        model = Model(api="rdk:component:generic", model="acme:test:counted")
        module, _ = await app.create_module(owner.organization, "counter")
        await app.update_module(module, "https://docs", "Counts.", [model], "./run.sh")
        info = ModuleFileInfo(module_id=module, version="1.0.0", platform=PLATFORM)
        await app.upload_module_file(info, make_module())
        config = tmp_path / "machine.json"
        await cloud.join(config)
        file = {**json.loads(config.read_text()), "network": {"bind_address": "localhost:0"}}
        settings = {"name": "counter", "type": "registry", "module_id": module, "version": "1.0.0"}
        thing = {"name": "c", "api": "rdk:component:generic", "model": "acme:test:counted"}
        await save(owner, file["cloud"]["id"], {"modules": [settings], "components": [thing]})
        async with (
            run_server(file, tmp_path, arguments=["-no-tls"]) as server,
            connect_machine(server, cloud) as machine,
        ):
            await wait_until_ready(machine, "c")


def make_module() -> bytes:
    """Return the archive of a module that runs with the Python of these tests."""
    run = f'#!/bin/sh\nexec {sys.executable} "$(dirname "$0")/main.py" "$@"\n'
    main = (Path(__file__).parent / "counting_module.py").read_text()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as packed:
        for name, text, mode in (("run.sh", run, 0o755), ("main.py", main, 0o644)):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), mode
            packed.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()
