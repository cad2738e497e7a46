"""Operations on registry items of any type: modules, ML models and others."""

from __future__ import annotations

from typing import Final

from viam.gen.app.packages.v1.packages_pb2 import PackageType
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.membership import organizations_of
from cogwork.cloud.operations.operation import Call, CloudOperation, reading, to_timestamp, writing
from cogwork.cloud.registry.item_text import format_details, parse_details, require_text
from cogwork.cloud.registry.item_usage import count_usage
from cogwork.cloud.registry.items import (
    Item,
    add_item,
    find_item,
    find_owned_item,
    item_id_of,
    require_item_name,
    select_item,
    select_items,
    type_name,
    type_number,
)
from cogwork.cloud.registry.module_operations import (
    describe_deprecation,
    list_module_versions,
    module_details,
    read_visibility,
    require_entrypoint,
)
from cogwork.cloud.registry.packages import list_artifacts, parts_of_item
from cogwork.cloud.storage.records import DuplicateRecord, Transaction
from cogwork.cloud.storage.select import exists, query_values
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_MAX_PAGE: Final = 1000


class ItemInUse(CogworkError):
    """Machines use the registry item."""

    status = "FAILED_PRECONDITION"


def create_registry_item(
    tx: Transaction, call: Call, request: pb.CreateRegistryItemRequest
) -> pb.CreateRegistryItemResponse:
    organization = (ResourceType.ORGANIZATION, request.organization_id)
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    add_item(tx, call, request.organization_id, request.name, type_name(request.type))
    return pb.CreateRegistryItemResponse()


def get_registry_item(
    tx: Transaction, call: Call, request: pb.GetRegistryItemRequest
) -> pb.GetRegistryItemResponse:
    item = find_item(tx, call.actor, request.item_id)
    with_text = request.include_markdown_documentation
    return pb.GetRegistryItemResponse(item=_describe(tx, item, with_text=with_text))


def update_registry_item(
    tx: Transaction, call: Call, request: pb.UpdateRegistryItemRequest
) -> pb.UpdateRegistryItemResponse:
    item = find_owned_item(tx, call, request.item_id)
    if request.type and type_name(request.type) != item.type:
        raise InvalidRequest(f"the type of an item cannot change; this one is of type {item.type}")
    tx.execute(
        "UPDATE registry_item SET visibility = ?, url = ?, description = ?, details = ?, "
        "updated_at = ? WHERE id = ?",
        read_visibility(request.visibility) or item.visibility,
        require_text(request.url, "URL") if request.HasField("url") else item.url,
        require_text(request.description, "description"),
        _read_details(request, item),
        *(call.now, item.id),
    )
    call.changed_parts += parts_of_item(tx, item)
    return pb.UpdateRegistryItemResponse()


def list_registry_items(
    tx: Transaction, call: Call, request: pb.ListRegistryItemsRequest
) -> pb.ListRegistryItemsResponse:
    """List the items of the organization and all public ones that pass the filters.

    The page token is the ID of the last item on the previous page.
    """
    organization = request.organization_id
    if organization and organization not in organizations_of(tx, call.actor):
        raise NotFound(f'there is no organization "{organization}", or it is not shared with you')
    items = [each for each in select_items(tx, organization) if _is_wanted(tx, each, request)]
    if request.page_token:
        seen = [item_id_of(each) for each in items]
        if request.page_token not in seen:
            raise InvalidRequest("the page token is not the ID of an item on the previous page")
        items = items[seen.index(request.page_token) + 1 :]
    with_text = request.include_markdown_documentation
    return pb.ListRegistryItemsResponse(
        items=[_describe(tx, each, with_text=with_text) for each in items[:_MAX_PAGE]]
    )


def delete_registry_item(
    tx: Transaction, call: Call, request: pb.DeleteRegistryItemRequest
) -> pb.DeleteRegistryItemResponse:
    """Delete an item. Its name can be used again only if nothing was ever uploaded."""
    item = find_owned_item(tx, call, request.item_id)
    users = parts_of_item(tx, item)
    _refuse_own_users(tx, item, users)
    call.changed_parts += users
    tx.execute("DELETE FROM deprecated_version WHERE item_id = ?", item.id)
    if exists(tx, "SELECT 1 FROM package WHERE item_id = ? LIMIT 1", item.id):
        tx.execute("UPDATE package SET deleted_at = ? WHERE item_id = ?", call.now, item.id)
        tx.execute("UPDATE registry_item SET deleted_at = ? WHERE id = ?", call.now, item.id)
    else:
        tx.execute("DELETE FROM registry_item WHERE id = ?", item.id)
    return pb.DeleteRegistryItemResponse()


def rename_registry_item(
    tx: Transaction, call: Call, request: pb.RenameRegistryItemRequest
) -> pb.RenameRegistryItemResponse:
    item = find_owned_item(tx, call, request.item_id)
    if parts_of_item(tx, item):
        raise ItemInUse("machines use this item by its name; remove it from them first")
    name = require_item_name(request.new_name)
    try:
        tx.execute("UPDATE registry_item SET name = ? WHERE id = ?", name, item.id)
    except DuplicateRecord:
        raise DuplicateRecord(
            f'the organization has or had an item "{name}"; choose another name'
        ) from None
    renamed = select_item(tx, f"{item.organization_id}:{name}")
    assert renamed is not None  # the item was renamed above
    return pb.RenameRegistryItemResponse(item=_describe(tx, renamed, with_text=False))


def deprecate_registry_item(
    tx: Transaction, call: Call, request: pb.DeprecateRegistryItemRequest
) -> pb.DeprecateRegistryItemResponse:
    """Hide an item from listings. Machines that use it keep it."""
    item = find_owned_item(tx, call, request.item_id)
    tx.execute(
        "UPDATE registry_item SET deprecated_at = ?, deprecation = ? WHERE id = ?",
        *(call.now, require_text(request.message, "message"), item.id),
    )
    return pb.DeprecateRegistryItemResponse()


def undeprecate_registry_item(
    tx: Transaction, call: Call, request: pb.UndeprecateRegistryItemRequest
) -> pb.UndeprecateRegistryItemResponse:
    item = find_owned_item(tx, call, request.item_id)
    tx.execute(
        "UPDATE registry_item SET deprecated_at = NULL, deprecation = '' WHERE id = ?", item.id
    )
    return pb.UndeprecateRegistryItemResponse()


def deprecate_registry_item_version(
    tx: Transaction, call: Call, request: pb.DeprecateRegistryItemVersionRequest
) -> pb.DeprecateRegistryItemVersionResponse:
    item = find_owned_item(tx, call, request.item_id)
    if request.version not in (row.version for row in list_artifacts(tx, item)):
        raise NotFound(f'"{item.name}" has no version "{request.version[:100]}"')
    tx.execute(
        "INSERT INTO deprecated_version (item_id, version, deprecated_at, deprecation) "
        "VALUES (?, ?, ?, ?) ON CONFLICT (item_id, version) "
        "DO UPDATE SET deprecation = excluded.deprecation",
        *(item.id, request.version, call.now, require_text(request.message, "message")),
    )
    return pb.DeprecateRegistryItemVersionResponse()


def undeprecate_registry_item_version(
    tx: Transaction, call: Call, request: pb.UndeprecateRegistryItemVersionRequest
) -> pb.UndeprecateRegistryItemVersionResponse:
    item = find_owned_item(tx, call, request.item_id)
    tx.execute(
        "DELETE FROM deprecated_version WHERE item_id = ? AND version = ?",
        *(item.id, request.version),
    )
    return pb.UndeprecateRegistryItemVersionResponse()


def _read_details(request: pb.UpdateRegistryItemRequest, item: Item) -> str:
    """Return the details in a request, which must match the type. Raise InvalidRequest."""
    match (item.type, request.WhichOneof("metadata")):
        case (_, None):
            return item.details
        case ("module", "update_module_metadata"):
            new = request.update_module_metadata
            require_entrypoint(new.entrypoint)
            details = parse_details(item.details, pb.ModuleMetadata())
            for field in ("models", "apps"):
                details.ClearField(field)
            details.MergeFrom(
                pb.ModuleMetadata(models=new.models, apps=new.apps, entrypoint=new.entrypoint)
            )
            return format_details(details)
        case ("ml_model", "update_ml_model_metadata"):
            model = request.update_ml_model_metadata
            return format_details(
                pb.MLModelMetadata(
                    model_type=model.model_type,
                    model_framework=model.model_framework,
                    deployment_modular_resources=model.deployment_modular_resources,
                )
            )
        case ("ml_training", "update_ml_training_metadata"):
            training = request.update_ml_training_metadata
            return format_details(
                pb.MLTrainingMetadata(
                    model_type=training.model_type,
                    model_framework=training.model_framework,
                    draft=training.draft,
                    deployment_modular_resources=training.deployment_modular_resources,
                )
            )
    raise InvalidRequest(f"the details do not fit an item of type {item.type}")


def _is_wanted(tx: Transaction, item: Item, request: pb.ListRegistryItemsRequest) -> bool:
    is_own = item.organization_id == request.organization_id
    if item.deprecated_at is not None and not (is_own and request.show_owned_deprecated):
        return False
    wanted_types = {type_name(each) for each in request.types}
    term = request.search_term.lower()
    return (
        (not wanted_types or item.type in wanted_types)
        and (not request.visibilities or item.visibility in request.visibilities)
        and (not request.public_namespaces or item.namespace in request.public_namespaces)
        and (not term or any(term in each.lower() for each in (item.name, item.description)))
        and _has_wanted_uploads(tx, item, request)
    )


def _has_wanted_uploads(tx: Transaction, item: Item, request: pb.ListRegistryItemsRequest) -> bool:
    if not request.statuses and not request.platforms:
        return True
    uploads = list_artifacts(tx, item)
    status = (
        pb.RegistryItemStatus.REGISTRY_ITEM_STATUS_PUBLISHED
        if uploads
        else pb.RegistryItemStatus.REGISTRY_ITEM_STATUS_IN_DEVELOPMENT
    )
    platforms = {row.platform for row in uploads}
    return (not request.statuses or status in request.statuses) and (
        not request.platforms or not platforms.isdisjoint(request.platforms)
    )


def _refuse_own_users(tx: Transaction, item: Item, parts: list[str]) -> None:
    own = {
        each
        for part in parts
        for each in query_values(
            tx,
            str,
            "SELECT id FROM part WHERE id = ? AND organization_id = ?",
            *(part, item.organization_id),
        )
    }
    if own:
        raise ItemInUse(f"{len(own)} parts of machines use this item; remove it from them first")


def _describe(tx: Transaction, item: Item, *, with_text: bool) -> pb.RegistryItem:
    usage = count_usage(tx, item)
    found = pb.RegistryItem(
        item_id=item_id_of(item),
        organization_id=item.organization_id,
        public_namespace=item.namespace or "",
        name=item.name,
        type=type_number(item.type),
        visibility=pb.Visibility.ValueType(item.visibility),
        url=item.url,
        description=item.description,
        total_robot_usage=usage.machines,
        total_external_robot_usage=usage.external_machines,
        total_organization_usage=usage.organizations,
        total_external_organization_usage=usage.external_organizations,
        created_at=to_timestamp(item.created_at),
        updated_at=to_timestamp(item.updated_at),
    )
    if item.deprecated_at is not None:
        found.deprecated_status.CopyFrom(describe_deprecation(item.deprecated_at, item.deprecation))
    match found.type:
        case PackageType.PACKAGE_TYPE_MODULE:
            found.module_metadata.CopyFrom(_describe_module(tx, item, with_text=with_text))
        case PackageType.PACKAGE_TYPE_ML_MODEL:
            found.ml_model_metadata.CopyFrom(_describe_model(tx, item))
        case PackageType.PACKAGE_TYPE_ML_TRAINING:
            found.ml_training_metadata.CopyFrom(_describe_training(tx, item))
    return found


def _describe_module(tx: Transaction, item: Item, *, with_text: bool) -> pb.ModuleMetadata:
    found = module_details(item.details, with_text=with_text)
    for each in list_module_versions(tx, item, with_text=with_text):
        found.versions.add(
            version=each.version,
            files=each.files,
            models=each.models,
            entrypoint=each.entrypoint,
            first_run=each.first_run if each.HasField("first_run") else None,
            apps=each.apps,
            deprecated_status=each.deprecated_status
            if each.HasField("deprecated_status")
            else None,
        )
    return found


def _describe_model(tx: Transaction, item: Item) -> pb.MLModelMetadata:
    found = parse_details(item.details, pb.MLModelMetadata())
    for row in list_artifacts(tx, item):
        found.versions.append(row.version)
        found.detailed_versions.add(version=row.version, created_on=to_timestamp(row.created_at))
    return found


def _describe_training(tx: Transaction, item: Item) -> pb.MLTrainingMetadata:
    found = parse_details(item.details, pb.MLTrainingMetadata())
    for row in list_artifacts(tx, item):
        found.versions.add(version=row.version, created_on=to_timestamp(row.created_at))
    return found


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateRegistryItem": writing(create_registry_item),
    "GetRegistryItem": reading(get_registry_item),
    "UpdateRegistryItem": writing(update_registry_item),
    "ListRegistryItems": reading(list_registry_items),
    "DeleteRegistryItem": writing(delete_registry_item),
    "RenameRegistryItem": writing(rename_registry_item),
    "DeprecateRegistryItem": writing(deprecate_registry_item),
    "UndeprecateRegistryItem": writing(undeprecate_registry_item),
    "DeprecateRegistryItemVersion": writing(deprecate_registry_item_version),
    "UndeprecateRegistryItemVersion": writing(undeprecate_registry_item_version),
}
