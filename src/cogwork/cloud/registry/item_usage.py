"""The number of machines and organizations that use a registry item."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.cloud.registry.items import Item
from cogwork.cloud.registry.packages import parts_of_item
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query


class ItemUsage(NamedTuple):
    machines: int
    external_machines: int
    """Number of machines in other organizations than the item's own."""
    organizations: int
    external_organizations: int


class _User(NamedTuple):
    machine_id: str
    organization_id: str


def count_usage(tx: Transaction, item: Item) -> ItemUsage:
    users = {
        user
        for part in {*parts_of_item(tx, item)}
        for user in query(
            tx,
            _User,
            "SELECT machine_id, organization_id FROM part WHERE id = ? AND deleted_at IS NULL",
            part,
        )
    }
    external = {each for each in users if each.organization_id != item.organization_id}
    return ItemUsage(
        machines=len(users),
        external_machines=len(external),
        organizations=len({each.organization_id for each in users}),
        external_organizations=len({each.organization_id for each in external}),
    )
