"""Which organizations an actor belongs to.

What an organization shares with all of its machines (packages, modules, fragments) is visible to
every key that has a role on anything of it, and to the parts themselves.
"""

from __future__ import annotations

from cogwork.cloud.identity.access import grants_of
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.visibility import Visibility
from cogwork.cloud.storage.records import Transaction


def organizations_of(tx: Transaction, actor: Actor) -> set[str]:
    if actor.type is ActorType.API_KEY:
        return {row["organization_id"] for row in grants_of(tx, actor.id)}
    rows = tx.query(
        "SELECT organization_id FROM part WHERE id = ? AND deleted_at IS NULL", actor.id
    )
    return {row["organization_id"] for row in rows}


def can_see(tx: Transaction, actor: Actor, organization: str, visibility: int) -> bool:
    """Return whether an actor may read something of an organization, given its ID."""
    return visibility != Visibility.PRIVATE or organization in organizations_of(tx, actor)
