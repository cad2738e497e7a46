"""Operations on organizations."""

from __future__ import annotations

from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.identity.access import (
    ROLE_NAMES,
    CloudRole,
    ResourceType,
    find_role,
    require_role,
)
from cogwork.cloud.identity.actor import Actor
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import (
    Call,
    CloudOperation,
    new_id,
    reading,
    to_timestamp,
    writing,
)
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select, select_one
from cogwork.cloud.storage.tables import OrganizationRow, RoleGrantRow


def add_organization(tx: Transaction, call: Call, name: str, *, is_hosting: bool = False) -> str:
    """Add an organization without any keys, and return its ID.

    `is_hosting` is True for the first organization, whose owners may create other organizations.
    """
    organization = new_id()
    new = OrganizationRow(
        organization, require_name(name), namespace=None, created_at=call.now, is_hosting=is_hosting
    )
    insert(tx, new)
    return organization


def create_organization(
    tx: Transaction, call: Call, request: pb.CreateOrganizationRequest
) -> pb.CreateOrganizationResponse:
    _require_host(tx, call.actor)
    organization = add_organization(tx, call, request.name)
    insert(
        tx,
        RoleGrantRow(
            key_id=call.actor.id,
            organization_id=organization,
            resource_type=ResourceType.ORGANIZATION,
            resource_id=organization,
            role=ROLE_NAMES[CloudRole.OWNER],
        ),
    )
    return pb.CreateOrganizationResponse(organization=_read(tx, organization))


def _require_host(tx: Transaction, actor: Actor) -> None:
    """Raise RoleTooLow if the actor is not an owner of the organization that hosts the cloud."""
    hosting = select_one(tx, OrganizationRow, "WHERE is_hosting = 1")
    role = find_role(tx, actor, (ResourceType.ORGANIZATION, hosting.id)) if hosting else None
    if role is not CloudRole.OWNER:
        raise RoleTooLow(
            "only owners of the organization that hosts this cloud create organizations; ask one "
            "of them for an organization and the key of its owner"
        )


def list_organizations(
    tx: Transaction, call: Call, _: pb.ListOrganizationsRequest
) -> pb.ListOrganizationsResponse:
    """List the organizations in which the actor has any role."""
    rows = select(
        tx,
        OrganizationRow,
        "WHERE id IN "
        "(SELECT organization_id FROM role_grant WHERE key_id = ?) ORDER BY created_at, id",
        call.actor.id,
    )
    return pb.ListOrganizationsResponse(organizations=map(_describe, rows))


def get_organization(
    tx: Transaction, call: Call, request: pb.GetOrganizationRequest
) -> pb.GetOrganizationResponse:
    require_role(tx, call.actor, (ResourceType.ORGANIZATION, request.organization_id))
    return pb.GetOrganizationResponse(organization=_read(tx, request.organization_id))


def update_organization(
    tx: Transaction, call: Call, request: pb.UpdateOrganizationRequest
) -> pb.UpdateOrganizationResponse:
    organization = (ResourceType.ORGANIZATION, request.organization_id)
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    if request.HasField("name"):
        tx.execute(
            "UPDATE organization SET name = ? WHERE id = ?",
            *(require_name(request.name), request.organization_id),
        )
    return pb.UpdateOrganizationResponse(organization=_read(tx, request.organization_id))


def _read(tx: Transaction, organization: str) -> pb.Organization:
    row = select_one(tx, OrganizationRow, "WHERE id = ?", organization)
    assert row is not None  # the caller has checked that the organization exists
    return _describe(row)


def _describe(row: OrganizationRow) -> pb.Organization:
    return pb.Organization(
        id=row.id,
        name=row.name,
        created_on=to_timestamp(row.created_at),
        public_namespace=row.namespace or "",
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateOrganization": writing(create_organization),
    "ListOrganizations": reading(list_organizations),
    "GetOrganization": reading(get_organization),
    "UpdateOrganization": writing(update_organization),
}
