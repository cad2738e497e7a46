"""Which actors may act as a part of a machine."""

from __future__ import annotations

from cogwork.cloud.fleet.parts import select_part
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role, require_role
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Row, Transaction
from cogwork.core.errors import NotFound


def require_own_part(tx: Transaction, actor: Actor, part_id: str) -> Row:
    """Return the part. A part acts for itself, and a key for the parts that it owns.

    Operators must not: what a machine gets contains the keys of its owners.
    """
    part = select_part(tx, part_id)
    if part is not None:
        machine = (ResourceType.MACHINE, part["machine_id"])
        if actor == Actor(ActorType.PART, part_id):
            return part
        if find_role(tx, actor, machine) is not None:
            require_role(tx, actor, machine, CloudRole.OWNER)
            return part
    raise NotFound(f'there is no part "{part_id}", or it is not yours')
