"""Operations on API keys and their roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.affected_parts import parts_below, parts_of_key
from cogwork.cloud.fleet.local_keys import are_local, is_local_key
from cogwork.cloud.identity.access import (
    ROLE_NAMES,
    CloudRole,
    Resource,
    ResourceType,
    find_role,
    organization_of,
    parse_resource,
    require_role,
)
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    new_id,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.storage.insert import insert, upsert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import exists, query_values, select, select_one
from cogwork.cloud.storage.tables import ApiKeyRow, RoleGrantRow
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_MAX_KEYS: Final = 1_000
"""Maximum number of keys with a role on one resource, because access lists contain all of them."""


class LastOwner(CogworkError):
    """The last owner of an organization cannot be removed."""

    status = "FAILED_PRECONDITION"


class KeyIsReadable(CogworkError):
    """A key that is stored in plaintext must not get access to more than one machine."""

    status = "FAILED_PRECONDITION"


class KeyLimit(CogworkError):
    """The resource already has the maximum number of keys with a role."""

    status = "RESOURCE_EXHAUSTED"


def create_key(tx: Transaction, call: Call, request: pb.CreateKeyRequest) -> pb.CreateKeyResponse:
    if not request.authorizations:
        raise InvalidRequest("a new key needs at least one role")
    grants = [_read_grant(tx, call, each) for each in request.authorizations]
    organizations = {organization_of(tx, resource) for resource, _ in grants}
    if len(organizations) != 1:
        raise InvalidRequest("the roles of a new key must be in one organization")
    if any(each.identity_id for each in request.authorizations):
        raise InvalidRequest("a new key has no identity yet; leave identity_id empty")
    (organization,) = organizations
    for resource, _ in grants:
        _require_room(tx, organization, resource)
    name = require_name(request.name) if request.name else "unnamed"
    key, text = add_key(tx, call, organization, name, grants)
    return pb.CreateKeyResponse(id=key, key=text)


def add_key(
    tx: Transaction,
    call: Call,
    organization: str,
    name: str,
    grants: list[tuple[Resource, CloudRole]],
) -> tuple[str, str]:
    """Create a key. Return its ID and its text."""
    key, secret = new_id(), call.keyring.make_secret()
    sealed = secret.sealed if are_local({resource for resource, _ in grants}) else ""
    insert(tx, ApiKeyRow(key, organization, name, secret.digest, sealed, call.now, epoch=0))
    for resource, role in grants:
        _grant(tx, call, key, organization, resource, role)
    return key, secret.text


def list_keys(tx: Transaction, call: Call, request: pb.ListKeysRequest) -> pb.ListKeysResponse:
    organization = (ResourceType.ORGANIZATION, request.org_id)
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    keys = select(
        tx, ApiKeyRow, "WHERE organization_id = ? ORDER BY created_at, id", request.org_id
    )
    grants = select(
        tx,
        RoleGrantRow,
        "JOIN api_key ON api_key.id = role_grant.key_id "
        "WHERE api_key.organization_id = ? ORDER BY resource_type, resource_id",
        request.org_id,
    )
    return pb.ListKeysResponse(api_keys=_describe_all(keys, grants))


def get_robot_api_keys(
    tx: Transaction, call: Call, request: pb.GetRobotAPIKeysRequest
) -> pb.GetRobotAPIKeysResponse:
    """List the keys with a role on the machine itself, and show the local ones to owners.

    Other keys were shown when they were created, and cannot be shown again.
    """
    require_role(tx, call.actor, (ResourceType.MACHINE, request.robot_id), CloudRole.OWNER)
    keys = select(
        tx,
        ApiKeyRow,
        "JOIN role_grant ON role_grant.key_id = api_key.id "
        "WHERE resource_type = 'robot' AND resource_id = ? ORDER BY created_at, id",
        request.robot_id,
    )
    grants = select(
        tx,
        RoleGrantRow,
        "WHERE key_id IN (SELECT key_id FROM role_grant "
        "WHERE resource_type = 'robot' AND resource_id = ?) ORDER BY resource_type, resource_id",
        request.robot_id,
    )
    found = _describe_all(keys, grants)
    for each, key in zip(found, keys, strict=True):
        if key.sealed and _owns_all(tx, call, each.authorizations):
            each.api_key.key = call.keyring.unseal(key.sealed)
    return pb.GetRobotAPIKeysResponse(api_keys=found)


def delete_key(tx: Transaction, call: Call, request: pb.DeleteKeyRequest) -> pb.DeleteKeyResponse:
    key = _find_key(tx, call, request.id)
    call.changed_parts += parts_of_key(tx, request.id)
    call.ended_credentials.append(request.id)
    tx.execute("DELETE FROM role_grant WHERE key_id = ?", request.id)
    tx.execute("DELETE FROM api_key WHERE id = ?", request.id)
    _require_owner_left(tx, key.organization_id)
    return pb.DeleteKeyResponse()


def rotate_key(tx: Transaction, call: Call, request: pb.RotateKeyRequest) -> pb.RotateKeyResponse:
    _find_key(tx, call, request.id)
    call.changed_parts += parts_of_key(tx, request.id)
    call.ended_credentials.append(request.id)
    secret = call.keyring.make_secret()
    tx.execute(
        "UPDATE api_key SET digest = ?, sealed = ?, epoch = epoch + 1 WHERE id = ?",
        *(secret.digest, secret.sealed if is_local_key(tx, request.id) else "", request.id),
    )
    return pb.RotateKeyResponse(id=request.id, key=secret.text)


def rename_key(tx: Transaction, call: Call, request: pb.RenameKeyRequest) -> pb.RenameKeyResponse:
    _find_key(tx, call, request.id)
    name = require_name(request.name)
    tx.execute("UPDATE api_key SET name = ? WHERE id = ?", name, request.id)
    return pb.RenameKeyResponse(id=request.id, name=name)


def add_role(tx: Transaction, call: Call, request: pb.AddRoleRequest) -> pb.AddRoleResponse:
    grant = _read_grant(tx, call, request.authorization)
    _add_role(tx, call, request.authorization.identity_id, grant)
    return pb.AddRoleResponse()


def remove_role(
    tx: Transaction, call: Call, request: pb.RemoveRoleRequest
) -> pb.RemoveRoleResponse:
    organization = _remove_role(tx, call, request.authorization)
    _require_owner_left(tx, organization)
    return pb.RemoveRoleResponse()


def change_role(
    tx: Transaction, call: Call, request: pb.ChangeRoleRequest
) -> pb.ChangeRoleResponse:
    # Check the new role first: the old role, which is removed below, may allow the change.
    grant = _read_grant(tx, call, request.new_authorization)
    organization = _remove_role(tx, call, request.old_authorization)
    _add_role(tx, call, request.new_authorization.identity_id, grant)
    _require_owner_left(tx, organization)
    return pb.ChangeRoleResponse()


def list_authorizations(
    tx: Transaction, call: Call, request: pb.ListAuthorizationsRequest
) -> pb.ListAuthorizationsResponse:
    organization = (ResourceType.ORGANIZATION, request.organization_id)
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    grants = select(
        tx,
        RoleGrantRow,
        "WHERE organization_id = ? ORDER BY key_id, resource_id",
        request.organization_id,
    )
    wanted = set(request.resource_ids)
    return pb.ListAuthorizationsResponse(
        authorizations=[
            pb.Authorization(
                authorization_type="role",
                authorization_id=f"{grant.resource_type}_{grant.role}",
                resource_type=grant.resource_type,
                resource_id=grant.resource_id,
                identity_id=grant.key_id,
                organization_id=grant.organization_id,
                identity_type="api-key",
            )
            for grant in grants
            if not wanted or grant.resource_id in wanted
        ]
    )


def _add_role(tx: Transaction, call: Call, key: str, grant: tuple[Resource, CloudRole]) -> None:
    resource, role = grant
    organization = organization_of(tx, resource)
    # Refuse keys of other organizations: a local key is shown to the owners of its machine.
    if not exists(
        tx, "SELECT 1 FROM api_key WHERE id = ? AND organization_id = ?", key, organization
    ):
        raise NotFound(f'there is no key "{key}" in this organization; create one')
    _require_room(tx, organization, resource, key)
    _grant(tx, call, key, organization, resource, role)


def _remove_role(tx: Transaction, call: Call, authorization: pb.Authorization) -> str:
    """Remove a role. Return the organization of its resource."""
    (kind, name), role = resource, _ = _read_grant(tx, call, authorization)
    removed = tx.execute(
        "DELETE FROM role_grant WHERE key_id = ? AND resource_type = ? AND resource_id = ? "
        "AND role = ?",
        *(authorization.identity_id, kind, name, ROLE_NAMES[role]),
    )
    if not removed:
        raise NotFound("the key does not have this role")
    call.changed_parts += parts_below(tx, resource)
    call.ended_credentials.append(authorization.identity_id)
    return organization_of(tx, resource)


def _require_room(
    tx: Transaction, organization: str, resource: Resource, key: str | None = None
) -> None:
    """Raise KeyLimit if no further key may get a role on the resource.

    `key` may already have a role, and is then allowed. The command that replaces the lost key of an
    owner does not check the limit: without an owner, no key could be deleted.
    """
    kind, name = resource
    keys = query_values(
        tx,
        str,
        "SELECT key_id FROM role_grant WHERE organization_id = ? AND resource_type = ? "
        "AND resource_id = ?",
        *(organization, kind, name),
    )
    if len(keys) >= _MAX_KEYS and key not in keys:
        raise KeyLimit(
            f"{len(keys):,} keys already have a role on {kind} {name}, and at most {_MAX_KEYS:,} "
            "may have one; delete unused keys"
        )


def _grant(
    tx: Transaction, call: Call, key: str, organization: str, resource: Resource, role: CloudRole
) -> None:
    kind, name = resource
    former = select_one(
        tx,
        RoleGrantRow,
        "WHERE key_id = ? AND resource_type = ? AND resource_id = ?",
        *(key, kind, name),
    )
    if former is not None and CloudRole[former.role.upper()] > role:
        call.ended_credentials.append(key)
    grant = RoleGrantRow(key, organization, kind, name, ROLE_NAMES[role])
    upsert(tx, grant, "key_id", "resource_type", "resource_id")
    if not is_local_key(tx, key):
        _require_never_readable(tx, key)
    call.changed_parts += parts_below(tx, resource)


def _require_never_readable(tx: Transaction, key: str) -> None:
    """Raise KeyIsReadable for a key that machines and their owners can read."""
    (sealed,) = query_values(tx, str, "SELECT sealed FROM api_key WHERE id = ?", key)
    if sealed:
        raise KeyIsReadable(
            "this key was made for one machine: the machine and its owners can read it, so it must "
            "not give access to anything else; create another key with these roles"
        )


def _read_grant(
    tx: Transaction, call: Call, authorization: pb.Authorization
) -> tuple[Resource, CloudRole]:
    """Return the resource and the role in an authorization. The actor must own the resource."""
    resource = parse_resource(authorization.resource_type, authorization.resource_id)
    kind, _, name = authorization.authorization_id.rpartition("_")
    by_name = {f"{resource[0]}_{name}": role for role, name in ROLE_NAMES.items()}
    role = by_name.get(f"{kind}_{name}")
    if authorization.authorization_type != "role" or role is None:
        raise InvalidRequest(
            f'"{authorization.authorization_id[:60]}" is not a role; use one of '
            + ", ".join(by_name)
        )
    require_role(tx, call.actor, resource, CloudRole.OWNER)
    return resource, role


def _owns_all(
    tx: Transaction, call: Call, authorizations: Iterable[pb.AuthorizationDetails]
) -> bool:
    """Return whether the actor owns every resource of these roles."""
    resources = (parse_resource(each.resource_type, each.resource_id) for each in authorizations)
    return all(find_role(tx, call.actor, each) is CloudRole.OWNER for each in resources)


def _find_key(tx: Transaction, call: Call, key: str) -> ApiKeyRow:
    """Return a key whose organization the actor owns. Raise NotFound."""
    found = select_one(tx, ApiKeyRow, "WHERE id = ?", key)
    if found is not None:
        organization = (ResourceType.ORGANIZATION, found.organization_id)
        if find_role(tx, call.actor, organization) is not None:
            require_role(tx, call.actor, organization, CloudRole.OWNER)
            return found
    raise NotFound(f'there is no key "{key}", or it is not shared with you')


def _require_owner_left(tx: Transaction, organization: str) -> None:
    if not exists(
        tx,
        "SELECT 1 FROM role_grant WHERE resource_type = 'organization' AND resource_id = ? "
        "AND role = 'owner' LIMIT 1",
        organization,
    ):
        raise LastOwner("this is the last owner of the organization; create another owner first")


def _describe_all(
    keys: Sequence[ApiKeyRow], grants: Sequence[RoleGrantRow]
) -> list[pb.APIKeyWithAuthorizations]:
    by_key: dict[str, list[RoleGrantRow]] = defaultdict(list)
    for grant in grants:
        by_key[grant.key_id].append(grant)
    return [_describe(key, by_key[key.id]) for key in keys]


def _describe(key: ApiKeyRow, grants: Sequence[RoleGrantRow]) -> pb.APIKeyWithAuthorizations:
    return pb.APIKeyWithAuthorizations(
        api_key=pb.APIKey(id=key.id, name=key.name, created_on=to_timestamp(key.created_at)),
        authorizations=[
            pb.AuthorizationDetails(
                authorization_type="role",
                authorization_id=f"{grant.resource_type}_{grant.role}",
                resource_type=grant.resource_type,
                resource_id=grant.resource_id,
                org_id=grant.organization_id,
            )
            for grant in grants
        ],
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateKey": writing(create_key),
    "ListKeys": reading(list_keys),
    "GetRobotAPIKeys": reading(get_robot_api_keys),
    "DeleteKey": writing(delete_key),
    "RotateKey": writing(rotate_key),
    "RenameKey": writing(rename_key),
    "AddRole": writing(add_role),
    "RemoveRole": writing(remove_role),
    "ChangeRole": writing(change_role),
    "ListAuthorizations": reading(list_authorizations),
}
