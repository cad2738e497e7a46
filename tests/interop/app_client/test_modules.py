"""Modules and packages of the registry, field by field."""

from __future__ import annotations

import base64

import google_crc32c
import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.app_client.owner import Owner, at
from tests.interop.app_client.test_machines import make_machine
from tests.support.archives import make_archive
from tests.support.cloud.fleet import DOMAIN
from viam.gen.app.packages.v1 import packages_pb2
from viam.gen.app.v1 import app_pb2 as pb

ARCHIVE = make_archive(**{"bin/run.sh": b"#!/bin/sh\n", "meta.json": b"{}"})
CHECKSUM = base64.b64encode(google_crc32c.value(ARCHIVE).to_bytes(4, "big")).decode()
MODEL = pb.Model(
    api="rdk:component:motor",
    model="acme:drive:fast",
    description="Drives fast.",
    supported_hardware=["acme-9"],
)
ML_MODEL = packages_pb2.PackageType.PACKAGE_TYPE_ML_MODEL
URL = f"https://{DOMAIN}:443"


async def test_modules(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    module, url = await client.create_module(owner.organization, "drive")
    check(pb.CreateModuleResponse(module_id=module, url=url))
    assert module == f"{owner.organization}:drive"
    assert url == f"{URL}/registry/{owner.organization}/drive"
    await client.update_module(module, "https://docs", "Treibt an.", [MODEL], "bin/run.sh", True)
    check(pb.UpdateModuleResponse(url=url))
    await owner.wait()
    info = pb.ModuleFileInfo(module_id=module, version="1.0.0", platform="linux/arm64")
    download = await client.upload_module_file(info, ARCHIVE)
    check(pb.UploadModuleFileResponse(url=download))
    assert download.startswith(f"{URL}/packages/")
    _, machine, _ = await make_machine(owner)
    await client.new_robot_part(machine, "second")
    for each in await client.get_robot_parts(machine):
        use = {"name": "drive", "type": "registry", "module_id": module, "version": "latest"}
        await client.update_robot_part(each.id, each.name, {"modules": [use]})

    expected = pb.Module(
        module_id=module,
        name="drive",
        visibility=pb.Visibility.VISIBILITY_PUBLIC,
        versions=[
            pb.VersionHistory(
                version="1.0.0",
                files=[pb.Uploads(platform="linux/arm64", uploaded_at=at(1))],
                models=[MODEL],
                entrypoint="bin/run.sh",
            )
        ],
        url="https://docs",
        description="Treibt an.",
        models=[MODEL],
        total_robot_usage=1,
        total_organization_usage=1,
        organization_id=owner.organization,
        entrypoint="bin/run.sh",
    )
    assert await client.get_module(module) == expected
    check(pb.GetModuleResponse(module=expected))
    assert await client.list_modules(owner.organization) == [expected]
    check(pb.ListModulesResponse(modules=[expected]))


async def test_packages(owner: Owner) -> None:
    check, metadata = owner.replies.check, owner.metadata
    info = packages_pb2.PackageInfo(
        organization_id=owner.organization,
        name="flowers",
        version="2026-11-17",
        type=ML_MODEL,
        files=[
            packages_pb2.FileInfo(name="model.tflite", size=1 << 40),
            packages_pb2.FileInfo(name="labels", is_directory=True),
        ],
    )
    info.metadata.update({"accuracy": 0.9, "größe": [1, 2]})
    await owner.wait()
    stream = [packages_pb2.CreatePackageRequest(info=info)]
    stream += [
        packages_pb2.CreatePackageRequest(contents=ARCHIVE[start : start + 50])
        for start in range(0, len(ARCHIVE), 50)
    ]
    await owner.packages.CreatePackage(stream, metadata=metadata)
    package = f"{owner.organization}/flowers"
    check(packages_pb2.CreatePackageResponse(id=package, version="2026-11-17"))

    expected = packages_pb2.Package(info=info, created_on=at(1), checksum=CHECKSUM, id=package)
    get = packages_pb2.GetPackageRequest(id=package, version="2026-11-17", type=ML_MODEL)
    await owner.packages.GetPackage(get, metadata=metadata)
    check(packages_pb2.GetPackageResponse(package=expected))
    every = packages_pb2.ListPackagesRequest(organization_id=owner.organization, include_url=True)
    found = await owner.packages.ListPackages(every, metadata=metadata)
    expected.url = found.packages[0].url
    assert expected.url.startswith(f"{URL}/packages/")
    check(packages_pb2.ListPackagesResponse(packages=[expected]))
    get.include_url = True
    await owner.packages.GetPackage(get, metadata=metadata)
    check(packages_pb2.GetPackageResponse(package=expected))

    delete = packages_pb2.DeletePackageRequest(id=package, version="2026-11-17", type=ML_MODEL)
    await owner.packages.DeletePackage(delete, metadata=metadata)
    check(packages_pb2.DeletePackageResponse())
    await owner.packages.ListPackages(every, metadata=metadata)
    check(packages_pb2.ListPackagesResponse())
    with pytest.raises(GRPCError) as refused:
        await owner.packages.GetPackage(get, metadata=metadata)
    assert refused.value.status is Status.NOT_FOUND
