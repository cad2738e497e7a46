"""Lookup of parts by host name, and of the role of an actor there."""

from __future__ import annotations

from cogwork.cloud.fleet.host_labels import find_labeled_part
from cogwork.cloud.fleet.parts import LocatedPart, select_part
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.public_name import PublicName
from cogwork.cloud.storage.records import Transaction


def find_host(tx: Transaction, name: PublicName, host: str, now: int) -> LocatedPart | None:
    """Return the part that has this name now, or had it recently."""
    found = name.parse_host(host)
    if found is None:
        return None
    part_id = found.part_id or find_labeled_part(tx, now, found.location, found.label)
    return None if part_id is None else select_part(tx, part_id)


def find_host_role(
    tx: Transaction, name: PublicName, actor: Actor, host: str, now: int
) -> tuple[LocatedPart, CloudRole] | None:
    """Return the part with this name and the actor's role on it; None without a role.

    Clients with the secret of the location have the role owner.
    """
    part = find_host(tx, name, host, now)
    if part is None:
        return None
    if actor == Actor(ActorType.LOCATION, part.location_id):
        return part, CloudRole.OWNER
    role = find_role(tx, actor, (ResourceType.MACHINE, part.machine_id))
    return None if role is None else (part, role)
