"""Operations on modules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.operations.operation import Call, CloudOperation, reading, to_timestamp, writing
from cogwork.cloud.operations.operation_runner import run_operation
from cogwork.cloud.registry.item_text import format_details, parse_details, require_text
from cogwork.cloud.registry.item_usage import count_usage
from cogwork.cloud.registry.items import (
    Item,
    add_item,
    find_item,
    find_owned_item,
    item_id_of,
    select_items,
)
from cogwork.cloud.registry.package_upload import receive_archive
from cogwork.cloud.registry.packages import (
    MODULE,
    NewPackage,
    add_package,
    download_url,
    list_artifacts,
    parts_of_item,
    require_platform,
    require_tags,
    require_upload,
)
from cogwork.cloud.registry.versions import require_semantic_version
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import DeprecatedVersionRow
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Stream

_ENTRYPOINT: Final = re.compile(r"(\./)?(?!/)[^\0${}]{1,500}")


def create_module(
    tx: Transaction, call: Call, request: pb.CreateModuleRequest
) -> pb.CreateModuleResponse:
    organization = request.organization_id
    require_role(tx, call.actor, (ResourceType.ORGANIZATION, organization), CloudRole.OWNER)
    item = add_item(tx, call, organization, request.name, MODULE)
    return pb.CreateModuleResponse(module_id=item_id_of(item), url=page_url(call, item))


def update_module(
    tx: Transaction, call: Call, request: pb.UpdateModuleRequest
) -> pb.UpdateModuleResponse:
    """Replace the description of a module. Uploaded versions keep the former description."""
    item = _require_module(find_owned_item(tx, call, request.module_id))
    details = pb.ModuleMetadata(
        models=request.models,
        entrypoint=require_entrypoint(request.entrypoint),
        first_run=request.first_run if request.HasField("first_run") else None,
        apps=request.apps,
        markdown_description=request.markdown_description
        if request.HasField("markdown_description")
        else None,
    )
    visibility = read_visibility(request.visibility) or item.visibility
    tx.execute(
        "UPDATE registry_item SET visibility = ?, url = ?, description = ?, details = ?, "
        "updated_at = ? WHERE id = ?",
        *(visibility, require_text(request.url, "URL")),
        *(require_text(request.description, "description"), format_details(details)),
        *(call.now, item.id),
    )
    call.changed_parts += parts_of_item(tx, item)
    return pb.UpdateModuleResponse(url=page_url(call, item))


def get_module(tx: Transaction, call: Call, request: pb.GetModuleRequest) -> pb.GetModuleResponse:
    item = _require_module(find_item(tx, call.actor, request.module_id))
    with_text = request.include_markdown_documentation
    return pb.GetModuleResponse(module=_describe(tx, item, with_text=with_text))


def list_modules(
    tx: Transaction, call: Call, request: pb.ListModulesRequest
) -> pb.ListModulesResponse:
    """List the modules of the organization, and all public ones."""
    organization = request.organization_id
    if organization and organization not in organizations_of(tx, call.actor):
        raise NotFound(f'there is no organization "{organization}", or it is not shared with you')
    with_text = request.include_markdown_documentation
    return pb.ListModulesResponse(
        modules=[
            _describe(tx, item, with_text=with_text)
            for item in select_items(tx, organization)
            if item.type == MODULE and item.deprecated_at is None
        ]
    )


async def upload_module_file(
    context: CloudContext, actor: Actor, stream: Stream
) -> pb.UploadModuleFileResponse:
    """Receive the archive of a version for a platform."""
    first: pb.UploadModuleFileRequest = await recv_first_message(stream, "UploadModuleFile")
    if not first.HasField("module_file_info"):
        raise InvalidRequest("the first message must have the module_file_info")
    info = first.module_file_info

    def check(tx: Transaction) -> NewPackage:
        call = context.make_call(actor)
        item = _require_module(find_owned_item(tx, call, info.module_id))
        new = NewPackage(
            item.organization_id,
            item.name,
            MODULE,
            require_semantic_version(info.version),
            require_platform(info.platform),
            require_tags(info.platform_tags),
        )
        require_upload(tx, call, new)
        return new

    # Check before receiving the archive. `add_package` checks again afterwards.
    new = await context.records.read(check)
    blob = await receive_archive(context, stream, "file")

    def add(tx: Transaction, call: Call, _: object) -> pb.UploadModuleFileResponse:
        return pb.UploadModuleFileResponse(url=download_url(call, add_package(tx, call, new, blob)))

    reply = await run_operation(context, writing(add), actor, first)
    assert isinstance(reply, pb.UploadModuleFileResponse)
    return reply


def require_entrypoint(path: str) -> str:
    """Return the path of the program in a module's archive. Raise InvalidRequest."""
    if path and (not _ENTRYPOINT.fullmatch(path) or ".." in path.split("/")):
        raise InvalidRequest(
            f'"{path[:100]}" cannot be the entrypoint; give the path of the program inside of the '
            "archive, such as bin/run.sh"
        )
    return path


def read_visibility(number: int) -> int | None:
    """Return the visibility in a request; None if it has none. Raise InvalidRequest."""
    if not number:
        return None
    try:
        return Visibility(number)
    except ValueError:
        raise InvalidRequest(f"{number} is not a value of Visibility") from None


def page_url(call: Call, item: Item) -> str:
    owner, _, name = item_id_of(item).partition(":")
    return f"{call.name.url}/registry/{owner}/{name}"


def list_module_versions(
    tx: Transaction, item: Item, *, with_text: bool
) -> Sequence[pb.VersionHistory]:
    """Return the versions of a module, the newest upload first."""
    deprecated = {
        each.version: each
        for each in select(tx, DeprecatedVersionRow, "WHERE item_id = ?", item.id)
    }
    found: dict[str, pb.VersionHistory] = {}
    for row in reversed(list_artifacts(tx, item)):
        version = found.get(row.version)
        if version is None:
            details = module_details(row.details, with_text=with_text)
            version = found[row.version] = pb.VersionHistory(
                version=row.version,
                models=details.models,
                entrypoint=details.entrypoint,
                first_run=details.first_run if details.HasField("first_run") else None,
                apps=details.apps,
            )
            if (why := deprecated.get(row.version)) is not None:
                version.deprecated_status.CopyFrom(
                    describe_deprecation(why.deprecated_at, why.deprecation)
                )
        version.files.add(platform=row.platform, uploaded_at=to_timestamp(row.created_at))
    return [*found.values()]


def module_details(text: str, *, with_text: bool) -> pb.ModuleMetadata:
    details = parse_details(text, pb.ModuleMetadata())
    if not with_text:
        details.ClearField("markdown_description")
        for model in details.models:
            model.ClearField("markdown_documentation")
    return details


def describe_deprecation(deprecated_at: int, message: str) -> pb.DeprecatedStatus:
    return pb.DeprecatedStatus(deprecated_at=to_timestamp(deprecated_at), message=message)


def _require_module(item: Item) -> Item:
    if item.type != MODULE:
        raise NotFound(f'"{item_id_of(item)}" is not a module, but of the type {item.type}')
    return item


def _describe(tx: Transaction, item: Item, *, with_text: bool) -> pb.Module:
    details, usage = module_details(item.details, with_text=with_text), count_usage(tx, item)
    found = pb.Module(
        module_id=item_id_of(item),
        name=item.name,
        visibility=pb.Visibility.ValueType(item.visibility),
        versions=list_module_versions(tx, item, with_text=with_text),
        url=item.url,
        description=item.description,
        models=details.models,
        total_robot_usage=usage.machines,
        total_organization_usage=usage.organizations,
        organization_id=item.organization_id,
        entrypoint=details.entrypoint,
        public_namespace=item.namespace or "",
        first_run=details.first_run if details.HasField("first_run") else None,
        markdown_description=details.markdown_description
        if details.HasField("markdown_description")
        else None,
        apps=details.apps,
    )
    if item.deprecated_at is not None:
        found.deprecated_status.CopyFrom(describe_deprecation(item.deprecated_at, item.deprecation))
    return found


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateModule": writing(create_module),
    "UpdateModule": writing(update_module),
    "GetModule": reading(get_module),
    "ListModules": reading(list_modules),
}
