"""Local keys: API keys whose roles are all on one machine.

Only local keys stay readable, because they give access to nothing else. Servers without access
lists check them in plaintext, and owners of the machine can read them again.
"""

from __future__ import annotations

from cogwork.cloud.identity.access import Resource, ResourceType, grants_of
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.tables import ApiKeyRow


def are_local(resources: set[Resource]) -> bool:
    """Return whether roles on these resources are all on one machine."""
    return len(resources) == 1 and next(iter(resources))[0] is ResourceType.MACHINE


def is_local_key(tx: Transaction, key: str) -> bool:
    return are_local(
        {(ResourceType(each.resource_type), each.resource_id) for each in grants_of(tx, key)}
    )


def list_local_keys(tx: Transaction, keyring: Keyring, machine: str) -> dict[str, str]:
    """Return the local keys with the role owner on a machine, by ID.

    The servers that get them ignore roles, so an operator would become an owner.
    """
    found = select(
        tx,
        ApiKeyRow,
        "JOIN role_grant ON role_grant.key_id = api_key.id WHERE resource_type = 'robot' "
        "AND resource_id = ? AND role = 'owner' AND sealed != '' ORDER BY api_key.id",
        machine,
    )
    return {key.id: keyring.unseal(key.sealed) for key in found if is_local_key(tx, key.id)}
