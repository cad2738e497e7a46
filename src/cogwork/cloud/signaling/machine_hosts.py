"""Names of machines: which part has one, and which role an actor has there."""

from __future__ import annotations

from cogwork.cloud.fleet.parts import list_parts_of_location
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.public_name import PublicName, local_name, location_of
from cogwork.cloud.storage.records import Row, Transaction


def list_parts_named(tx: Transaction, name: PublicName, hosts: list[str]) -> list[Row]:
    """Return the parts that have all these names: two parts may be called the same."""
    return [
        part
        for part in list_parts_of_location(tx, location_of(hosts[0]))
        if {name.full_name(part), local_name(part)}.issuperset(hosts)
    ]


def find_host_role(
    tx: Transaction, name: PublicName, actor: Actor, host: str
) -> tuple[Row, CloudRole] | None:
    """Return the part with this name on which the actor has a role, and the role.

    The secret of a location is for clients of its machines, where it gives all rights.
    """
    for part in list_parts_named(tx, name, [host]):
        if actor == Actor(ActorType.LOCATION, part["location_id"]):
            return part, CloudRole.OWNER
        machine = (ResourceType.MACHINE, part["machine_id"])
        if (role := find_role(tx, actor, machine)) is not None:
            return part, role
    return None
