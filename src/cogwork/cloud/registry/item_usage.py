"""How many machines and organizations use an item of the registry."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.cloud.registry.packages import parts_of_item
from cogwork.cloud.storage.records import Row, Transaction


class ItemUsage(NamedTuple):
    machines: int
    external_machines: int
    """Those of other organizations than the item's own."""
    organizations: int
    external_organizations: int


def count_usage(tx: Transaction, item: Row) -> ItemUsage:
    users = {
        (row["machine_id"], row["organization_id"])
        for part in {*parts_of_item(tx, item)}
        for row in tx.query(
            "SELECT machine_id, organization_id FROM part WHERE id = ? AND deleted_at IS NULL",
            part,
        )
    }
    external = {each for each in users if each[1] != item["organization_id"]}
    return ItemUsage(
        machines=len(users),
        external_machines=len(external),
        organizations=len({organization for _, organization in users}),
        external_organizations=len({organization for _, organization in external}),
    )
