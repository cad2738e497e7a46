"""Membership of actors in organizations.

Packages, modules and fragments of an organization are visible to every key with a role on any of
its resources, and to its parts.
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
    """Return whether an actor may see the shared data of the organization with this ID."""
    return visibility != Visibility.PRIVATE or organization in organizations_of(tx, actor)
