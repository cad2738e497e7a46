"""The roles of an actor on all resources of an organization, for lists."""

from __future__ import annotations

from typing import NamedTuple

from cogwork.cloud.identity.access import CloudRole, Resource, ResourceType, grants_of
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query


class _Nesting(NamedTuple):
    """A location with its parent."""

    id: str
    parent_id: str | None


class OrganizationRoles:
    """The roles of an actor in an organization, read with only two queries."""

    def __init__(self, tx: Transaction, actor: Actor, organization: str) -> None:
        grants = grants_of(tx, actor.id) if actor.type is ActorType.API_KEY else ()
        self._granted: dict[Resource, CloudRole] = {
            (ResourceType(each.resource_type), each.resource_id): CloudRole[each.role.upper()]
            for each in grants
        }
        self._organization = organization
        self._parents: dict[str, str | None] = dict(
            query(
                tx,
                _Nesting,
                "SELECT id, parent_id FROM location WHERE organization_id = ?",
                organization,
            )
        )

    def find_for_location(self, location: str) -> CloudRole | None:
        """Return the highest role on the location, or on a resource above it."""
        return max(self._list_above(location), default=None)

    def find_for_machine(self, machine: str, location: str) -> CloudRole | None:
        own = self._granted.get((ResourceType.MACHINE, machine))
        return max((*self._list_above(location), *([own] if own is not None else ())), default=None)

    def list_machines(self) -> list[str]:
        """Return the machines on which a role is granted directly."""
        return [each for kind, each in self._granted if kind is ResourceType.MACHINE]

    def _list_above(self, location: str) -> list[CloudRole]:
        resources: list[Resource] = [(ResourceType.ORGANIZATION, self._organization)]
        above: str | None = location
        while above is not None:
            resources.append((ResourceType.LOCATION, above))
            above = self._parents.get(above)
        return [self._granted[each] for each in resources if each in self._granted]
