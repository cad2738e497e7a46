"""The parts whose access lists change when a role, a key or a secret changes.

Machines without access lists get a new configuration, because it has their local keys.
"""

from __future__ import annotations

from typing import Final

from cogwork.cloud.identity.access import Resource, ResourceType, grants_of
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values

_PARTS: Final = (
    "SELECT part.id FROM part JOIN machine ON machine.id = part.machine_id "
    "WHERE part.deleted_at IS NULL AND "
)
_BELOW: Final = (
    "WITH RECURSIVE below (id) AS (SELECT id FROM location WHERE id = ? UNION ALL "
    "SELECT location.id FROM location JOIN below ON location.parent_id = below.id) "
)
_CONDITIONS: Final = {
    ResourceType.ORGANIZATION: f"{_PARTS} part.organization_id = ?",
    ResourceType.LOCATION: f"{_BELOW}{_PARTS} machine.location_id IN (SELECT id FROM below)",  # noqa: S608 - all of it is ours
    ResourceType.MACHINE: f"{_PARTS} machine.id = ?",
}


def parts_below(tx: Transaction, resource: Resource) -> list[str]:
    """Return the parts of a resource. Their access lists have the roles on the resource."""
    kind, name = resource
    return query_values(tx, str, _CONDITIONS[kind], name)


def parts_of_key(tx: Transaction, key: str) -> list[str]:
    """Return the parts that accept a key."""
    return [
        part
        for grant in grants_of(tx, key)
        for part in parts_below(tx, (ResourceType(grant.resource_type), grant.resource_id))
    ]


def parts_in_location(tx: Transaction, location: str) -> list[str]:
    """Return the parts of the machines directly in a location, which accept the location's
    secrets."""
    return query_values(tx, str, f"{_PARTS} machine.location_id = ?", location)
