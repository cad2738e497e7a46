"""Registry items: modules, ML models and other packages, with all of their versions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from viam.gen.app.packages.v1.packages_pb2 import PackageType

from cogwork.cloud.identity.access import CloudRole, ResourceType, require_role
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.identity.membership import can_see
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.operations.operation import Call, new_id
from cogwork.cloud.storage.records import DuplicateRecord, Transaction
from cogwork.cloud.storage.select import first, query, query_values
from cogwork.cloud.storage.tables import RegistryItemRow
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_MAX_ITEMS: Final = 1000
"""Maximum number of items in one organization."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_PREFIX: Final = "PACKAGE_TYPE_"

_SELECT: Final = (
    "SELECT registry_item.*, organization.namespace FROM registry_item "
    "JOIN organization ON organization.id = registry_item.organization_id "
    "WHERE registry_item.deleted_at IS NULL AND "
)


@dataclass(frozen=True, slots=True)
class Item(RegistryItemRow):
    """An item with the public namespace of its organization."""

    namespace: str | None


class RegistryFull(CogworkError):
    """The organization has too many items, or the item has too many versions."""

    status = "RESOURCE_EXHAUSTED"


def type_name(number: int) -> str:
    """Return the name of a package type in configurations, such as `ml_model`.

    Raise InvalidRequest.
    """
    try:
        name = PackageType.Name(number)  # type: ignore[arg-type]
    except ValueError:
        name = ""
    if number == PackageType.PACKAGE_TYPE_UNSPECIFIED or not name:
        raise InvalidRequest("the type of the package is missing; give one, such as ML_MODEL")
    return name.removeprefix(_PREFIX).lower()


def type_number(name: str) -> PackageType.ValueType:
    return PackageType.Value(f"{_PREFIX}{name.upper()}")


def item_id_of(item: Item) -> str:
    """Return the ID that people and configurations use for an item."""
    return f"{item.namespace or item.organization_id}:{item.name}"


def item_ids_of(item: Item) -> list[str]:
    """Return all IDs that identify the item."""
    owners = dict.fromkeys((item.namespace, item.organization_id))
    return [f"{owner}:{item.name}" for owner in owners if owner]


def select_item(tx: Transaction, item_id: str) -> Item | None:
    """Return an item by `namespace:name` or `organization:name`, or with a slash, as in
    packages."""
    owner, _, name = item_id.replace("/", ":", 1).partition(":")
    return first(
        query(
            tx,
            Item,
            f"{_SELECT} (organization.id = ? OR organization.namespace = ?) "
            "AND registry_item.name = ?",
            *(owner, owner, name),
        )
    )


def select_items(tx: Transaction, organization: str) -> list[Item]:
    """Return the items of an organization, and all public ones."""
    return query(
        tx,
        Item,
        f"{_SELECT} (organization.id = ? OR visibility = ?) "
        "ORDER BY registry_item.name, registry_item.id",
        *(organization, Visibility.PUBLIC),
    )


def find_item(tx: Transaction, actor: Actor, item_id: str) -> Item:
    """Return an item that the actor may see. Raise NotFound."""
    row = select_item(tx, item_id)
    if row is None or not can_see(tx, actor, row.organization_id, row.visibility):
        raise NotFound(
            f'there is no item "{item_id[:200]}" in the registry, or it is not shared with you'
        )
    return row


def find_owned_item(tx: Transaction, call: Call, item_id: str) -> Item:
    """Return an item of an organization that the actor owns. Raise NotFound or RoleTooLow."""
    row = find_item(tx, call.actor, item_id)
    require_role(tx, call.actor, (ResourceType.ORGANIZATION, row.organization_id), CloudRole.OWNER)
    return row


def require_item_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f'"{name[:100]}" cannot be the name of a package; use 1 to 80 letters, digits, "-" '
            'and "_", and begin with a letter or a digit'
        )
    return name


def add_item(tx: Transaction, call: Call, organization: str, name: str, kind: str) -> Item:
    """Create an item. The caller has checked the role."""
    require_item_name(name)
    (count,) = query_values(
        tx,
        int,
        "SELECT COUNT(*) AS count FROM registry_item WHERE organization_id = ? "
        "AND deleted_at IS NULL",
        organization,
    )
    if count >= _MAX_ITEMS:
        raise RegistryFull(f"the organization already has {_MAX_ITEMS} items; delete one first")
    try:
        tx.execute(
            "INSERT INTO registry_item (id, organization_id, name, type, visibility, url, "
            "description, details, created_at, updated_at, deprecation) "
            "VALUES (?, ?, ?, ?, ?, '', '', '{}', ?, ?, '')",
            *(new_id(), organization, name, kind, Visibility.PRIVATE, call.now, call.now),
        )
    except DuplicateRecord:
        raise DuplicateRecord(
            f'the organization has or had an item "{name}", and machines may have versions of it; '
            "choose another name"
        ) from None
    row = select_item(tx, f"{organization}:{name}")
    assert row is not None  # the item was added above
    return row
