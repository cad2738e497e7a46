"""A check that an actor may act as a part of a machine."""

from __future__ import annotations

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.fleet.local_keys import is_local_key
from cogwork.cloud.fleet.parts import LocatedPart, select_part
from cogwork.cloud.identity.access import CloudRole, ResourceType, find_role, require_role
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import NotFound


def require_own_part(tx: Transaction, actor: Actor, part_id: str) -> LocatedPart:
    """Return the part if the actor may act as it. Raise RoleTooLow or NotFound.

    A part may act as itself. A local key with the role owner may act as every part of its machine.
    Other keys give access to more than the machine, so they must not be stored there.
    """
    part = select_part(tx, part_id)
    if part is not None:
        machine = (ResourceType.MACHINE, part.machine_id)
        if actor == Actor(ActorType.PART, part_id):
            return part
        if find_role(tx, actor, machine) is not None:
            require_role(tx, actor, machine, CloudRole.OWNER)
            if not is_local_key(tx, actor.id):
                raise RoleTooLow(
                    f"{actor} gives access to more than this machine, so it must not be stored "
                    "there; write the secret of the part into the machine's file, or a key that "
                    "has a role only on this machine"
                )
            return part
    raise NotFound(f'there is no part "{part_id}", or it is not yours')
