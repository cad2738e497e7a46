"""Which organizations an actor belongs to.

What an organization shares with all of its machines (packages, modules, fragments) is visible to
every key that has a role on anything of it, and to the parts themselves.
"""

from __future__ import annotations

from cogwork.cloud.identity.access import grants_of
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values


def organizations_of(tx: Transaction, actor: Actor) -> set[str]:
    if actor.type is ActorType.API_KEY:
        return {grant.organization_id for grant in grants_of(tx, actor.id)}
    found = query_values(
        tx, str, "SELECT organization_id FROM part WHERE id = ? AND deleted_at IS NULL", actor.id
    )
    return {*found}


def can_see(tx: Transaction, actor: Actor, organization: str, visibility: int) -> bool:
    """Return whether an actor may read something of an organization, given its ID."""
    return visibility != Visibility.PRIVATE or organization in organizations_of(tx, actor)
