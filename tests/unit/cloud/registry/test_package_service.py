"""Uploads of packages, and their downloads over HTTP: who may, what is refused, which status."""

from __future__ import annotations

import base64
import os
from typing import Any

import google_crc32c
import pytest
from google.protobuf.message import Message
from tests.support.archives import make_archive, make_link_archive
from tests.support.cloud.in_process_cloud import HttpReply, TwoTenantCloud
from viam.gen.app.packages.v1 import packages_pb2 as pb
from viam.gen.app.v1 import app_pb2

from cogwork.auth.errors import RoleTooLow, Unauthenticated
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.registry.blob_sweep import sweep_blobs
from cogwork.cloud.storage.records import DuplicateRecord
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

OPERATOR, OWNER = CloudRole
MODEL = pb.PackageType.PACKAGE_TYPE_ML_MODEL
ARCHIVE = make_archive(model=os.urandom(5000))


def describe(cloud: TwoTenantCloud, version: str = "1.0", **fields: Any) -> pb.PackageInfo:
    fields = {"name": "detector", "version": version, "type": MODEL, **fields}
    return pb.PackageInfo(organization_id=cloud.mine.organization, **fields)


async def upload(
    cloud: TwoTenantCloud, token: str, info: pb.PackageInfo, content: bytes = ARCHIVE
) -> Any:
    chunks = [content[at : at + 1000] for at in range(0, len(content), 1000)]
    messages: list[Message] = [pb.CreatePackageRequest(info=info)]
    messages += [pb.CreatePackageRequest(contents=each) for each in chunks]
    return await cloud.call("CreatePackage", token, *messages)


async def find(cloud: TwoTenantCloud, token: str, version: str = "latest") -> pb.Package:
    item = f"{cloud.mine.organization}/detector"
    request = pb.GetPackageRequest(id=item, version=version, include_url=True)
    found: pb.Package = (await cloud.call("GetPackage", token, request)).package
    return found


async def download(
    cloud: TwoTenantCloud, url: str, method: str = "GET", **headers: str
) -> HttpReply:
    return await cloud.request(method, "/packages/" + url.rpartition("/")[2], headers=headers)


async def test_upload_is_downloaded_as_it_was(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    reply = await upload(cloud, owner, describe(cloud))
    assert (reply.id, reply.version) == (f"{cloud.mine.organization}/detector", "1.0")
    package = await find(cloud, await cloud.log_in_as(OPERATOR, ResourceType.MACHINE))
    checksum = base64.b64encode(google_crc32c.value(ARCHIVE).to_bytes(4, "big")).decode()
    assert (package.info.version, package.checksum) == ("1.0", checksum)
    key_id, key = await cloud.create_key(OPERATOR, ResourceType.MACHINE)
    secret = await cloud.read_secret(cloud.mine.part)
    for headers in ({"key_id": key_id, "key": key}, {"part_id": cloud.mine.part, "secret": secret}):
        found = await download(cloud, package.url, **headers)
        assert (found.status, found.body) == (200, ARCHIVE)
        assert found.headers["x-goog-hash"] == f"crc32c={checksum}"
        assert found.headers["content-length"] == str(len(ARCHIVE))
    head = await download(cloud, package.url, "HEAD", **headers)
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(ARCHIVE))
    rest = await download(cloud, package.url, **headers, range="bytes=100-")
    assert (rest.status, rest.body) == (206, ARCHIVE[100:])
    assert rest.headers["content-range"] == f"bytes 100-{len(ARCHIVE) - 1}/{len(ARCHIVE)}"
    etag = rest.headers["etag"]
    same = {"range": "bytes=0-9", "if-range": etag}
    assert (await download(cloud, package.url, **headers, **same)).body == ARCHIVE[:10]
    changed = {"range": "bytes=0-9", "if-range": '"other"'}
    assert (await download(cloud, package.url, **headers, **changed)).status == 200
    behind = await download(cloud, package.url, **headers, range="bytes=999999-")
    assert (behind.status, behind.headers["content-range"]) == (416, f"bytes */{len(ARCHIVE)}")


async def test_download_is_for_those_who_see_the_package(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    await upload(cloud, owner, describe(cloud))
    url = (await find(cloud, owner)).url
    assert (await download(cloud, url)).status == 401
    assert (await download(cloud, url, key_id=cloud.owner[0], key="wrong")).status == 401
    assert (await download(cloud, url, key_id="x" * 1000, key="wrong")).status == 400
    stranger = await cloud.create_key(OWNER, ResourceType.ORGANIZATION, tenant=cloud.other)
    login = dict(zip(("key_id", "key"), stranger, strict=True))
    secret = await cloud.read_secret(cloud.other.part)
    for headers in (login, {"part_id": cloud.other.part, "secret": secret}):
        assert (await download(cloud, url, **headers)).status == 404
        assert (await download(cloud, "unknown.tar.gz", **headers)).status == 404
    update = app_pb2.UpdateRegistryItemRequest(
        item_id=f"{cloud.mine.organization}:detector",
        type=MODEL,
        visibility=app_pb2.VISIBILITY_PUBLIC,
    )
    await cloud.call("UpdateRegistryItem", owner, update)
    assert (await download(cloud, url, **login)).status == 200


async def test_deleted_package_is_neither_found_nor_uploaded_again(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    await upload(cloud, owner, describe(cloud))
    url = (await find(cloud, owner)).url
    delete = pb.DeletePackageRequest(id=f"{cloud.mine.organization}/detector", version="1.0")
    await cloud.call("DeletePackage", owner, delete)
    login = dict(zip(("key_id", "key"), cloud.owner, strict=True))
    assert (await download(cloud, url, **login)).status == 404
    with pytest.raises(NotFound):
        await find(cloud, owner)
    with pytest.raises(NotFound):
        await cloud.call("DeletePackage", owner, delete)
    with pytest.raises(DuplicateRecord, match="never changes"):
        await upload(cloud, owner, describe(cloud))


async def test_packages_are_listed_by_name_version_and_type(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    for version in ("1.0", "2.0"):
        await upload(cloud, owner, describe(cloud, version))
        await cloud.clock.advance(1)

    async def names(**filters: Any) -> list[tuple[str, str]]:
        request = pb.ListPackagesRequest(organization_id=cloud.mine.organization, **filters)
        found = (await cloud.call("ListPackages", owner, request)).packages
        assert not any(each.url for each in found)
        return [(each.info.name, each.info.version) for each in found]

    detectors = [("detector", "1.0"), ("detector", "2.0")]
    assert await names(name="detector") == detectors
    assert await names(type=MODEL) == detectors
    assert await names(version="2.0") == detectors[1:]
    assert len(await names()) == 3


@pytest.mark.parametrize("kind", ResourceType)
@pytest.mark.parametrize("role", CloudRole)
async def test_only_owners_of_the_organization_upload(
    cloud: TwoTenantCloud, kind: ResourceType, role: CloudRole
) -> None:
    token = await cloud.log_in_as(role, kind)
    is_owner = role is OWNER and kind is ResourceType.ORGANIZATION
    if is_owner:
        await upload(cloud, token, describe(cloud))
    else:
        with pytest.raises((NotFound, RoleTooLow)):
            await upload(cloud, token, describe(cloud))
    assert (await sweep_blobs(cloud.context)) == 0


async def test_strangers_machines_and_nobody_upload_nothing(cloud: TwoTenantCloud) -> None:
    for token in (await cloud.log_in_as(OWNER, tenant=cloud.other), await cloud.log_in_part()):
        with pytest.raises(NotFound):
            await upload(cloud, token, describe(cloud))
    with pytest.raises(Unauthenticated):
        await upload(cloud, "", describe(cloud))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK" + bytes(5000), "is not a .tar.gz archive"),
        (ARCHIVE[:2000], "could not unpack"),
        (make_archive(**{"../../etc/passwd": b"x"}), "could not unpack"),
        (make_link_archive("/etc/passwd"), "could not unpack"),
        (b"", "is not a .tar.gz archive"),
    ],
    ids=["zip", "cut off", "outside", "link", "empty"],
)
async def test_archive_that_machines_could_not_unpack(
    cloud: TwoTenantCloud, content: bytes, message: str
) -> None:
    owner = await cloud.log_in_as(OWNER)
    with pytest.raises(InvalidRequest, match=message):
        await upload(cloud, owner, describe(cloud), content)
    with pytest.raises(NotFound):
        await find(cloud, owner)


async def test_first_message_describes_and_the_others_have_the_content(
    cloud: TwoTenantCloud,
) -> None:
    owner = await cloud.log_in_as(OWNER)
    content, info = pb.CreatePackageRequest(contents=ARCHIVE), describe(cloud)
    with pytest.raises(InvalidRequest, match="must have the info"):
        await cloud.call("CreatePackage", owner, content)
    first = pb.CreatePackageRequest(info=info)
    with pytest.raises(InvalidRequest, match="only the first message"):
        await cloud.call("CreatePackage", owner, first, first)
    file = app_pb2.UploadModuleFileRequest(file=ARCHIVE)
    with pytest.raises(InvalidRequest, match="must have the module_file_info"):
        await cloud.call("UploadModuleFile", owner, file)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"version": "latest"}, InvalidRequest),
        ({"version": "a b"}, InvalidRequest),
        ({"platform": "../x"}, InvalidRequest),
        ({"type": pb.PackageType.PACKAGE_TYPE_MODULE}, InvalidRequest),
        ({"type": pb.PackageType.PACKAGE_TYPE_UNSPECIFIED}, InvalidRequest),
    ],
    ids=str,
)
async def test_package_that_cannot_be_described(
    cloud: TwoTenantCloud, fields: dict[str, Any], error: type[CogworkError]
) -> None:
    owner = await cloud.log_in_as(OWNER)
    with pytest.raises(error):
        await upload(cloud, owner, describe(cloud, **fields))


async def test_name_belongs_to_one_type(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    info = describe(cloud)
    info.name = "drive"  # a module
    with pytest.raises(InvalidRequest, match="is of the type module"):
        await upload(cloud, owner, info)


async def test_without_a_version_it_is_the_time(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    assert (await upload(cloud, owner, describe(cloud, ""))).version == "2027-01-15T08-00-00"
