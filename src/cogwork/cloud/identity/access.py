"""The roles of actors on resources.

A role is granted on an organization, a location or a machine, and includes everything below it.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import exists, query, query_values, select
from cogwork.cloud.storage.tables import RoleGrantRow
from cogwork.core.errors import InvalidRequest, NotFound


class ResourceType(enum.StrEnum):
    """The types of resources with roles, by their names in the public API."""

    ORGANIZATION = "organization"
    LOCATION = "location"
    MACHINE = "robot"


class CloudRole(enum.IntEnum):
    OPERATOR = 1
    """May see and operate everything."""
    OWNER = 2
    """May also change configurations, keys and roles."""


ROLE_NAMES: Final = {role: role.name.lower() for role in CloudRole}


class _LocationAbove(NamedTuple):
    id: str
    organization_id: str


_ABOVE_LOCATION: Final = """
WITH RECURSIVE above (id, parent_id, organization_id) AS (
    SELECT id, parent_id, organization_id FROM location WHERE id = ?
    UNION ALL
    SELECT location.id, location.parent_id, location.organization_id
    FROM location JOIN above ON location.id = above.parent_id
)
SELECT id, organization_id FROM above
"""

Resource = tuple[ResourceType, str]


def require_role(
    tx: Transaction, actor: Actor, resource: Resource, role: CloudRole = CloudRole.OPERATOR
) -> None:
    """Raise NotFound if the actor has no role on the resource, RoleTooLow if it is below `role`."""
    found = find_role(tx, actor, resource)
    kind, name = resource
    if found is None:
        raise NotFound(f'there is no {kind} "{name}", or it is not shared with you')
    if found < role:
        raise RoleTooLow(
            f"this requires the role {ROLE_NAMES[role]} on {kind} {name}; {actor} has the role "
            f"{ROLE_NAMES[found]}"
        )


def find_role(tx: Transaction, actor: Actor, resource: Resource) -> CloudRole | None:
    """Return the highest role of the actor on the resource, or on one above it."""
    if actor.type is not ActorType.API_KEY:
        return None
    granted = {
        (row.resource_type, row.resource_id): CloudRole[row.role.upper()]
        for row in grants_of(tx, actor.id)
    }
    roles = [granted[each] for each in list_above(tx, resource) if each in granted]
    return max(roles, default=None)


def grants_of(tx: Transaction, key_id: str) -> list[RoleGrantRow]:
    return select(tx, RoleGrantRow, "WHERE key_id = ?", key_id)


def organization_of(tx: Transaction, resource: Resource) -> str:
    """Return the organization of a resource. Raise NotFound."""
    above = list_above(tx, resource)
    if not above:
        raise NotFound(f'there is no {resource[0]} "{resource[1]}"')
    return above[-1][1]


def parse_resource(kind: str, name: str) -> Resource:
    try:
        return ResourceType(kind), name
    except ValueError:
        raise InvalidRequest(
            f'"{kind[:40]}" is not a type of resource; use organization, location or robot'
        ) from None


def list_above(tx: Transaction, resource: Resource) -> list[Resource]:
    """Return the resource and all above it, the organization last; nothing if it does not exist."""
    kind, name = resource
    if kind is ResourceType.ORGANIZATION:
        found = exists(tx, "SELECT 1 FROM organization WHERE id = ?", name)
        return [resource] if found else []
    above: list[Resource] = []
    if kind is ResourceType.MACHINE:
        own = query_values(
            tx, str, "SELECT location_id FROM machine WHERE id = ? AND deleted_at IS NULL", name
        )
        if not own:
            return []
        above.append(resource)
        (name,) = own
    locations = query(tx, _LocationAbove, _ABOVE_LOCATION, name)
    above += [(ResourceType.LOCATION, each.id) for each in locations]
    above += [(ResourceType.ORGANIZATION, each.organization_id) for each in locations[-1:]]
    return above
