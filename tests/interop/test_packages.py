"""Packages: upload over gRPC, and download over HTTP as an unmodified machine does it."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import os
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import google_crc32c
import pytest
import pytest_asyncio
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.archives import make_archive, make_link_archive
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.cloud.fleet import Cloud, make_part
from viam.app.app_client import APIKeyAuthorization
from viam.app.viam_client import ViamClient
from viam.gen.app.packages.v1 import packages_pb2 as pb
from viam.gen.app.packages.v1.packages_grpc import PackageServiceStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = pb.PackageType.PACKAGE_TYPE_ML_MODEL
CONTENT = make_archive(**{"model.tflite": os.urandom(3_000_000), "labels.txt": b"cat\ndog\n"})


@dataclass
class Owner:
    """A client of a real cloud, with the generated stub that the SDK has no client for."""

    cloud: Cloud
    client: ViamClient
    organization: str

    @property
    def packages(self) -> PackageServiceStub:
        return PackageServiceStub(self.client._channel)

    @property
    def metadata(self) -> dict[str, str]:
        return dict(self.client._metadata)

    async def upload(
        self, name: str, version: str, content: bytes = CONTENT, chunk: int = 32 * 1024
    ) -> pb.CreatePackageResponse:
        info = pb.PackageInfo(
            organization_id=self.organization, name=name, version=version, type=MODEL
        )
        info.metadata.update({"accuracy": 0.9})
        info.files.add(name="model.tflite", size=3_000_000)
        async with self.packages.CreatePackage.open(metadata=self.metadata) as stream:
            await stream.send_message(pb.CreatePackageRequest(info=info))
            for start in range(0, len(content), chunk):
                piece = content[start : start + chunk]
                await stream.send_message(pb.CreatePackageRequest(contents=piece))
            await stream.end()
            reply = await stream.recv_message()
            if reply is None:
                await stream.recv_trailing_metadata()
            assert reply is not None
            return cast("pb.CreatePackageResponse", reply)

    async def get(self, name: str, version: str = "latest") -> pb.Package:
        request = pb.GetPackageRequest(
            id=f"{self.organization}/{name}", version=version, type=MODEL, include_url=True
        )
        reply = await self.packages.GetPackage(request, metadata=self.metadata)
        return cast("pb.Package", reply.package)


@contextlib.asynccontextmanager
async def run_program(directory: Path) -> AsyncIterator[Cloud]:
    """A cloud in a process of its own, which serves HTTP as well."""
    process = CloudProcess(directory / "cloud")
    await process.initialize()
    async with process.serve():
        yield process.client()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cloud(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cloud]:
    async with run_program(tmp_path_factory.mktemp("packages")) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def owner(cloud: Cloud) -> AsyncIterator[Owner]:
    """The owner of a new organization."""
    organization, key_id, key = await create_organization(cloud)
    own = Cloud(cloud.address, key_id, key)
    client = await own.connect()
    yield Owner(own, client, organization)
    client.close()


async def create_organization(cloud: Cloud) -> tuple[str, str, str]:
    """Return its ID, and the ID and the key of its owner."""
    client = await cloud.connect()
    app = client.app_client
    organization = (await app.create_organization(f"Mill {uuid.uuid4()}")).id
    role = APIKeyAuthorization("owner", "organization", organization)
    key, key_id = await app.create_key(organization, [role], "owner")
    client.close()
    return organization, key_id, key


async def ask(
    cloud: Cloud, method: str, path: str, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    def work() -> tuple[int, dict[str, str], bytes]:
        host, _, port = cloud.address.partition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            found = {key.lower(): value for key, value in response.getheaders()}
            return response.status, found, response.read()
        finally:
            connection.close()

    return await asyncio.to_thread(work)


def key_of(cloud: Cloud) -> dict[str, str]:
    return {"key_id": cloud.key_id, "key": cloud.key}


async def test_package_has_everything_that_was_uploaded(owner: Owner) -> None:
    created = await owner.upload("detector", "1.0")
    assert (created.id, created.version) == (f"{owner.organization}/detector", "1.0")
    found = await owner.get("detector", "1.0")
    assert found.id == created.id
    assert (found.info.organization_id, found.info.name) == (owner.organization, "detector")
    assert (found.info.version, found.info.type) == ("1.0", MODEL)
    assert dict(found.info.metadata) == {"accuracy": 0.9}
    assert [(each.name, each.size) for each in found.info.files] == [("model.tflite", 3_000_000)]
    listed = await owner.packages.ListPackages(
        pb.ListPackagesRequest(organization_id=owner.organization, include_url=True),
        metadata=owner.metadata,
    )
    assert list(listed.packages) == [found]


async def test_machine_downloads_a_package(owner: Owner) -> None:
    """HEAD, then GET, then GET of the rest: with the headers of an unmodified server."""
    await owner.upload("detector", "1.0")
    path = urlsplit((await owner.get("detector")).url).path
    part = await owner.client.app_client.get_robot_part(await make_part(owner.client.app_client))
    checksum = base64.b64encode(google_crc32c.value(CONTENT).to_bytes(4, "big")).decode()
    for login in (key_of(owner.cloud), {"part_id": part.id, "secret": part.secret}):
        status, headers, body = await ask(owner.cloud, "HEAD", path, login)
        assert (status, body) == (200, b"")
        assert headers["content-type"] == "application/x-gzip"
        assert headers["content-length"] == str(len(CONTENT))
        assert headers["accept-ranges"] == "bytes"
        assert headers["x-goog-hash"] == f"crc32c={checksum}"
        status, headers, body = await ask(owner.cloud, "GET", path, login)
        assert (status, body) == (200, CONTENT)
        assert headers["x-goog-hash"] == f"crc32c={checksum}"
        status, headers, body = await ask(
            owner.cloud, "GET", path, {**login, "Range": "bytes=1000000-"}
        )
        assert (status, body) == (206, CONTENT[1_000_000:])
        assert headers["content-range"] == f"bytes 1000000-{len(CONTENT) - 1}/{len(CONTENT)}"
    beyond = {**key_of(owner.cloud), "Range": f"bytes={len(CONTENT)}-"}
    status, headers, _ = await ask(owner.cloud, "GET", path, beyond)
    assert (status, headers["content-range"]) == (416, f"bytes */{len(CONTENT)}")
    other = {**key_of(owner.cloud), "Range": "bytes=5-", "If-Range": '"another"'}
    status, _, body = await ask(owner.cloud, "GET", path, other)
    assert (status, body) == (200, CONTENT)


async def test_download_requires_a_key_of_the_organization(cloud: Cloud, owner: Owner) -> None:
    await owner.upload("detector", "1.0")
    path = urlsplit((await owner.get("detector")).url).path
    _, key_id, key = await create_organization(cloud)
    for headers, expected in (
        ({}, 401),
        ({"key_id": owner.cloud.key_id}, 401),
        ({"key_id": owner.cloud.key_id, "key": "wrong"}, 401),
        ({"key_id": key_id, "key": key}, 404),
    ):
        status, _, body = await ask(owner.cloud, "GET", path, headers)
        assert status == expected
        assert CONTENT[:100] not in body
    unknown = "/packages/00000000-0000-0000-0000-000000000000.tar.gz"
    assert (await ask(owner.cloud, "GET", unknown, key_of(owner.cloud)))[0] == 404


async def test_key_of_one_machine_downloads_the_packages_of_its_organization(owner: Owner) -> None:
    await owner.upload("detector", "1.0")
    app = owner.client.app_client
    machine = (await app.get_robot_part(await make_part(app))).robot
    key, key_id = await app.create_key(
        owner.organization, [APIKeyAuthorization("owner", "robot", machine)], "machine"
    )
    client = await owner.cloud.connect(key_id, key)
    mine = Owner(owner.cloud, client, owner.organization)
    path = urlsplit((await mine.get("detector")).url).path
    status, _, body = await ask(owner.cloud, "GET", path, {"key_id": key_id, "key": key})
    assert (status, body) == (200, CONTENT)
    with pytest.raises(GRPCError) as refused:
        await mine.upload("mine", "1.0")
    assert refused.value.status is Status.NOT_FOUND
    client.close()


async def test_version_never_changes(owner: Owner) -> None:
    await owner.upload("detector", "1.0")
    with pytest.raises(GRPCError, match="never changes") as refused:
        await owner.upload("detector", "1.0", make_archive(other=b"content"))
    assert refused.value.status is Status.ALREADY_EXISTS
    delete = pb.DeletePackageRequest(id=f"{owner.organization}/detector", version="1.0", type=MODEL)
    path = urlsplit((await owner.get("detector")).url).path
    await owner.packages.DeletePackage(delete, metadata=owner.metadata)
    assert (await ask(owner.cloud, "GET", path, key_of(owner.cloud)))[0] == 404
    with pytest.raises(GRPCError, match="never changes"):
        await owner.upload("detector", "1.0", make_archive(other=b"content"))
    await owner.upload("detector", "1.1")
    assert (await owner.get("detector")).info.version == "1.1"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not a .tar.gz"),
        (b"PK\x03\x04", "not a .tar.gz"),
        (CONTENT[:1_000_000], "could not unpack"),
        (make_archive(**{"../../etc/cron.d/x": b"x"}), "outside"),
        (make_link_archive("/etc/passwd"), "outside"),
        (make_link_archive("../../x"), "outside"),
    ],
    # The archives have the time, so workers that collect the tests would disagree.
    ids=["empty", "zip", "cut off", "path", "absolute link", "relative link"],
)
async def test_archive_that_machines_refuse_is_refused(
    owner: Owner, content: bytes, reason: str
) -> None:
    with pytest.raises(GRPCError, match=reason) as refused:
        await owner.upload("detector", "1.0", content)
    assert refused.value.status is Status.INVALID_ARGUMENT
    listed = await owner.packages.ListPackages(
        pb.ListPackagesRequest(organization_id=owner.organization), metadata=owner.metadata
    )
    assert not listed.packages


@pytest.mark.parametrize(("name", "version"), [("a b", "1"), ("..", "1"), ("ok", "latest")])
async def test_invalid_names_and_versions(owner: Owner, name: str, version: str) -> None:
    with pytest.raises(GRPCError) as refused:
        await owner.upload(name, version, make_archive(x=b"x"))
    assert refused.value.status is Status.INVALID_ARGUMENT


async def test_two_uploads_of_a_version_at_once(owner: Owner) -> None:
    found = await asyncio.gather(
        *(owner.upload("detector", "1.0") for _ in range(4)), return_exceptions=True
    )
    assert [type(each) for each in found].count(GRPCError) == 3
    assert (await owner.get("detector")).info.version == "1.0"
