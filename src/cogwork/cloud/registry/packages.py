"""Packages: the artifacts of registry items. Each is an archive that never changes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from google.protobuf.json_format import MessageToDict, ParseDict, SerializeToJsonError
from viam.gen.app.packages.v1 import packages_pb2 as pb

from cogwork.cloud.configuration.config_references import TargetType, parts_that_use
from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    new_id,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.registry.items import (
    Item,
    RegistryFull,
    add_item,
    find_item,
    find_owned_item,
    item_ids_of,
    select_item,
    select_items,
    type_name,
    type_number,
)
from cogwork.cloud.registry.versions import (
    Artifact,
    choose_artifact,
    require_semantic_version,
    require_version,
)
from cogwork.cloud.storage.blobs import Blob
from cogwork.cloud.storage.records import DuplicateRecord, Transaction
from cogwork.cloud.storage.select import query, select
from cogwork.cloud.storage.tables import PackageRow
from cogwork.core.errors import InvalidRequest, NotFound

MODULE: Final = "module"
_MAX_VERSIONS: Final = 2000
"""Maximum number of packages of one item."""
_MAX_FILES: Final = 10_000
_MAX_METADATA: Final = 1 << 16
_PLATFORM: Final = re.compile(r"any|[a-z0-9]{1,20}/[a-z0-9]{1,20}")
_MAX_TAGS: Final = 32
_MAX_TAG: Final = 100


@dataclass(frozen=True, slots=True)
class NewPackage:
    organization: str
    name: str
    type: str
    version: str
    platform: str = ""
    tags: tuple[str, ...] = ()
    files: str = "[]"
    metadata: str = "{}"

    @property
    def label(self) -> str:
        """The label, which machines use as the version and as the name of a directory."""
        platform = f"-{self.platform.replace('/', '-')}" if self.platform else ""
        digest = hashlib.sha256("\n".join(self.tags).encode()).hexdigest()[:8]
        return f"{self.version}{platform}{f'-{digest}' if self.tags else ''}"


def check_package(info: pb.PackageInfo, now: int) -> NewPackage:
    """Return the package that an upload describes. The version defaults to the current time.

    Raise InvalidRequest.
    """
    kind = type_name(info.type)
    if len(info.files) > _MAX_FILES:
        raise InvalidRequest(f"the package lists more than {_MAX_FILES} files; leave the list out")
    try:
        metadata = json.dumps(MessageToDict(info.metadata))
    except (ValueError, SerializeToJsonError) as error:
        raise InvalidRequest(f"the metadata cannot be written as JSON: {error}") from None
    if len(metadata) > _MAX_METADATA:
        raise InvalidRequest(f"the metadata is larger than {_MAX_METADATA >> 10} KiB")
    version = info.version or f"{datetime.fromtimestamp(now / 1e6, UTC):%Y-%m-%dT%H-%M-%S}"
    return NewPackage(
        info.organization_id,
        info.name,
        kind,
        require_semantic_version(version) if kind == MODULE else require_version(version),
        require_platform(info.platform) if info.HasField("platform") else "",
        files=json.dumps([MessageToDict(each) for each in info.files]),
        metadata=metadata,
    )


def require_platform(platform: str) -> str:
    if not _PLATFORM.fullmatch(platform):
        raise InvalidRequest(
            f'"{platform[:50]}" is not a platform; use one such as linux/amd64, linux/any or any'
        )
    return platform


def require_tags(tags: Sequence[str]) -> tuple[str, ...]:
    if len(tags) > _MAX_TAGS or any(not 0 < len(each) <= _MAX_TAG for each in tags):
        raise InvalidRequest(f"use at most {_MAX_TAGS} platform tags of 1 to {_MAX_TAG} characters")
    return tuple(sorted({*tags}))


class _Upload(NamedTuple):
    """An uploaded version."""

    label: str
    deleted_at: int | None


def require_upload(tx: Transaction, call: Call, new: NewPackage) -> Item | None:
    """Check that a package may be uploaded. Return its item; None if it is new.

    Raise RoleTooLow, NotFound, InvalidRequest, RegistryFull or DuplicateRecord.
    """
    organization = (ResourceType.ORGANIZATION, new.organization)
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    item = select_item(tx, f"{new.organization}:{new.name}")
    if item is None:
        return None
    if item.type != new.type:
        raise InvalidRequest(
            f'"{new.name}" is of the type {item.type}, not {new.type}; choose another name'
        )
    found = query(tx, _Upload, "SELECT label, deleted_at FROM package WHERE item_id = ?", item.id)
    if new.label in (row.label for row in found):
        raise DuplicateRecord(
            f'"{new.name}" already has the version {new.label}, and a version never changes; '
            "upload it as a new version"
        )
    if sum(row.deleted_at is None for row in found) >= _MAX_VERSIONS:
        raise RegistryFull(f'"{new.name}" has {_MAX_VERSIONS} versions; delete old ones first')
    return item


def add_package(tx: Transaction, call: Call, new: NewPackage, blob: Blob) -> PackageRow:
    """Add the record of a package whose content is stored, and of its item if the item is new."""
    item = require_upload(tx, call, new) or add_item(tx, call, new.organization, new.name, new.type)
    package = new_id()
    tx.execute(
        "INSERT INTO package (id, item_id, version, platform, platform_tags, label, digest, "
        "crc32c, size, files, metadata, details, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(package, item.id, new.version, new.platform, json.dumps(new.tags), new.label),
        *(blob.digest, blob.crc32c, blob.size, new.files, new.metadata, item.details, call.now),
    )
    tx.execute("UPDATE registry_item SET updated_at = ? WHERE id = ?", call.now, item.id)
    call.changed_parts += parts_of_item(tx, item)
    return package_row(tx, package)


def parts_of_item(tx: Transaction, item: Item) -> list[str]:
    """Return the parts that name an item in their configuration or in a fragment."""
    found = [parts_that_use(tx, TargetType.ITEM, each) for each in item_ids_of(item)]
    return [part for parts in found for part in parts]


def package_row(tx: Transaction, package: str) -> PackageRow:
    (row,) = select(tx, PackageRow, "WHERE id = ?", package)
    return row


def list_artifacts(tx: Transaction, item: Item) -> list[PackageRow]:
    """Return the packages of an item in the order of their uploads."""
    return select(
        tx, PackageRow, "WHERE item_id = ? AND deleted_at IS NULL ORDER BY created_at, id", item.id
    )


def find_artifact(
    tx: Transaction, item: Item, version: str, platform: str, tags: Sequence[str] = ()
) -> PackageRow:
    """Return the package of an item that fits a machine. Raise NotFound with the reason."""
    rows = {row.label: row for row in list_artifacts(tx, item)}
    artifacts = [
        Artifact(
            row.label,
            row.version,
            row.platform,
            frozenset(json.loads(row.platform_tags)),
        )
        for row in rows.values()
    ]
    return rows[choose_artifact(artifacts, version, platform, tags).label]


def get_package(
    tx: Transaction, call: Call, request: pb.GetPackageRequest
) -> pb.GetPackageResponse:
    item = find_item(tx, call.actor, request.id)
    if request.HasField("type") and type_name(request.type) != item.type:
        raise NotFound(f'"{request.id[:200]}" is of the type {item.type}, not the requested type')
    exact = [row for row in list_artifacts(tx, item) if row.label == request.version]
    row = exact[0] if exact else find_artifact(tx, item, request.version, request.platform)
    return pb.GetPackageResponse(
        package=_describe(call, item, row, include_url=request.include_url)
    )


def list_packages(
    tx: Transaction, call: Call, request: pb.ListPackagesRequest
) -> pb.ListPackagesResponse:
    organization = (ResourceType.ORGANIZATION, request.organization_id)
    require_role(tx, call.actor, organization)
    found = [
        _describe(call, item, row, include_url=request.include_url)
        for item in select_items(tx, request.organization_id)
        if item.organization_id == request.organization_id and _is_wanted(item, request)
        for row in list_artifacts(tx, item)
        if not request.version or request.version in (row.version, row.label)
    ]
    return pb.ListPackagesResponse(packages=found)


def delete_package(
    tx: Transaction, call: Call, request: pb.DeletePackageRequest
) -> pb.DeletePackageResponse:
    """Delete a version. It cannot be uploaded again, because machines may have its content."""
    item = find_owned_item(tx, call, request.id)
    if request.type and type_name(request.type) != item.type:
        raise NotFound(f'"{request.id[:200]}" is of the type {item.type}, not the requested type')
    deleted = tx.execute(
        "UPDATE package SET deleted_at = ? WHERE item_id = ? AND deleted_at IS NULL "
        "AND (version = ? OR label = ?)",
        *(call.now, item.id, request.version, request.version),
    )
    if not deleted:
        raise NotFound(f'"{request.id[:200]}" has no version "{request.version[:100]}"')
    call.changed_parts += parts_of_item(tx, item)
    return pb.DeletePackageResponse()


def package_id_of(item: Item) -> str:
    """Return the ID with which machines ask for the packages of an item."""
    return f"{item.organization_id}/{item.name}"


def download_url(call: Call, package: PackageRow) -> str:
    return f"{call.name.url}/packages/{package.id}.tar.gz"


def encode_checksum(package: PackageRow) -> str:
    return base64.b64encode(package.crc32c.to_bytes(4, "big")).decode()


def _is_wanted(item: Item, request: pb.ListPackagesRequest) -> bool:
    return (not request.name or item.name == request.name) and (
        not request.type or item.type == type_name(request.type)
    )


def _describe(call: Call, item: Item, row: PackageRow, *, include_url: bool) -> pb.Package:
    files: list[dict[str, Any]] = json.loads(row.files)
    info = pb.PackageInfo(
        organization_id=item.organization_id,
        name=item.name,
        version=row.label,
        type=type_number(item.type),
        platform=row.platform or None,
        files=[ParseDict(each, pb.FileInfo()) for each in files],
    )
    info.metadata.update(json.loads(row.metadata))
    return pb.Package(
        info=info,
        url=download_url(call, row) if include_url else "",
        created_on=to_timestamp(row.created_at),
        checksum=encode_checksum(row),
        id=package_id_of(item),
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "GetPackage": reading(get_package),
    "ListPackages": reading(list_packages),
    "DeletePackage": writing(delete_package),
}
