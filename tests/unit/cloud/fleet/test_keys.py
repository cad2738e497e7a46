"""Keys and their roles: what may be granted, what is shown, and what follows from a change."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.errors import RoleTooLow
from cogwork.cloud.fleet.keys import KeyIsReadable, LastOwner
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound


@pytest.mark.parametrize("kind", ["organization", "location", "robot"])
def test_new_key_is_told_to_every_part_below_and_ends_nothing(
    acme: OwnedOrganization, kind: str
) -> None:
    acme.create(acme.grant(kind, "operator"))
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [])


def test_key_of_one_machine_is_shown_to_its_owners_again(acme: OwnedOrganization) -> None:
    made = acme.create(acme.grant("robot", "operator"))
    request = pb.GetRobotAPIKeysRequest(robot_id=acme.tenant.machine)
    (shown,) = acme.run(request).api_keys
    assert (shown.api_key.id, shown.api_key.key) == (made.id, made.key)


@pytest.mark.parametrize("kind", ["organization", "location"])
def test_wider_key_is_never_shown_again(acme: OwnedOrganization, kind: str) -> None:
    made = acme.create(acme.grant(kind, "operator"), acme.grant("robot", "owner"))
    request = pb.GetRobotAPIKeysRequest(robot_id=acme.tenant.machine)
    (shown,) = acme.run(request).api_keys
    assert (shown.api_key.id, shown.api_key.key) == (made.id, "")


def test_key_that_a_machine_can_read_opens_nothing_else(acme: OwnedOrganization) -> None:
    made = acme.create(acme.grant("robot", "owner"))
    for kind in ("organization", "location"):
        with pytest.raises(KeyIsReadable, match="create another key"):
            acme.run(pb.AddRoleRequest(authorization=acme.grant(kind, "operator", key=made.id)))
    acme.run(pb.AddRoleRequest(authorization=acme.grant("robot", "operator", key=made.id)))


def test_roles_of_a_new_key_are_in_one_organization(acme: OwnedOrganization) -> None:
    both = acme.cloud.add_tenant("Other")
    # An owner of both: the host's key, which creates organizations.
    granted = [
        acme.grant("organization", "operator"),
        acme.grant("organization", "operator", both.organization),
    ]
    with pytest.raises(InvalidRequest, match="in one organization"):
        acme.cloud.run(acme.cloud.owner, pb.CreateKeyRequest(name="x", authorizations=granted))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"authorization_id": "robot_admin"}, "use one of"),
        ({"authorization_id": "organization_owner"}, "use one of"),
        ({"authorization_type": "permission"}, "is not a role"),
        ({"resource_type": "part"}, "is not a type of resource"),
        ({"resource_id": "elsewhere"}, "there is no robot"),
        ({"identity_id": "someone"}, "leave identity_id empty"),
    ],
)
def test_what_is_not_a_role_is_refused(
    acme: OwnedOrganization, change: dict[str, str], message: str
) -> None:
    grant = acme.grant("robot", "owner")
    for field, value in change.items():
        setattr(grant, field, value)
    with pytest.raises(CogworkError, match=message):
        acme.create(grant)


def test_key_without_a_role_is_refused(acme: OwnedOrganization) -> None:
    with pytest.raises(InvalidRequest, match="at least one"):
        acme.create()


@pytest.mark.parametrize("request_type", [pb.DeleteKeyRequest, pb.RotateKeyRequest])
def test_removed_and_replaced_keys_end(acme: OwnedOrganization, request_type: Any) -> None:
    key = acme.create(acme.grant("location", "operator")).id
    acme.run(request_type(id=key))
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [key])


def test_renamed_key_ends_nothing(acme: OwnedOrganization) -> None:
    key = acme.create(acme.grant("location", "operator")).id
    assert acme.run(pb.RenameKeyRequest(id=key, name="visitors")).name == "visitors"
    assert (acme.changed, acme.ended) == (set(), [])


def test_lower_role_ends_what_the_higher_one_opened(acme: OwnedOrganization) -> None:
    key = acme.create(acme.grant("robot", "owner")).id
    acme.run(pb.AddRoleRequest(authorization=acme.grant("robot", "operator", key=key)))
    assert acme.ended == [key]
    acme.run(pb.AddRoleRequest(authorization=acme.grant("robot", "owner", key=key)))
    assert acme.ended == []
    assert acme.changed == {acme.tenant.part}


def test_removed_role_ends_the_key(acme: OwnedOrganization) -> None:
    key = acme.create(acme.grant("robot", "owner"), acme.grant("robot", "owner")).id
    grant = acme.grant("robot", "owner", key=key)
    acme.run(pb.RemoveRoleRequest(authorization=grant))
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [key])
    with pytest.raises(NotFound, match="does not have this role"):
        acme.run(pb.RemoveRoleRequest(authorization=grant))


def test_organization_keeps_an_owner(acme: OwnedOrganization) -> None:
    tenant = acme.tenant
    acme.cloud.run(acme.cloud.owner, pb.RemoveRoleRequest(authorization=_host_grant(acme)))
    own = acme.grant("organization", "owner", key=tenant.key)
    lower = acme.grant("organization", "operator", key=tenant.key)
    changes: list[Any] = [
        pb.DeleteKeyRequest(id=tenant.key),
        pb.RemoveRoleRequest(authorization=own),
        pb.ChangeRoleRequest(old_authorization=own, new_authorization=lower),
    ]
    for change in changes:
        with pytest.raises(LastOwner, match="create another owner first"):
            acme.run(change)
    request = pb.ListKeysRequest(org_id=tenant.organization)
    assert [each.api_key.id for each in acme.run(request).api_keys] == [tenant.key]


def test_owner_can_lower_its_own_role_if_there_is_another(acme: OwnedOrganization) -> None:
    second = acme.create(acme.grant("organization", "owner")).id
    own = acme.grant("organization", "owner", key=acme.tenant.key)
    lower = acme.grant("organization", "operator", key=acme.tenant.key)
    acme.run(pb.ChangeRoleRequest(old_authorization=own, new_authorization=lower))
    assert acme.ended == [acme.tenant.key]
    raised = pb.ChangeRoleRequest(old_authorization=lower, new_authorization=own)
    with pytest.raises(RoleTooLow):
        acme.run(raised)
    acme.cloud.run(second, raised)


def test_role_is_given_to_keys_of_the_organization_only(acme: OwnedOrganization) -> None:
    other = acme.cloud.add_tenant("Other")
    for key in (other.key, "ghost"):
        with pytest.raises(NotFound, match="in this organization"):
            acme.run(pb.AddRoleRequest(authorization=acme.grant("robot", "operator", key=key)))


def test_authorizations_are_filtered_by_resource(acme: OwnedOrganization) -> None:
    key = acme.create(acme.grant("robot", "operator"), acme.grant("location", "operator")).id
    listing = pb.ListAuthorizationsRequest(organization_id=acme.tenant.organization)
    # With the owner's own, and that of the host, which has created the organization.
    assert len(acme.run(listing).authorizations) == 4
    listing.resource_ids.append(acme.tenant.machine)
    (found,) = acme.run(listing).authorizations
    assert (found.identity_id, found.authorization_id) == (key, "robot_operator")


def _host_grant(acme: OwnedOrganization) -> pb.Authorization:
    return acme.grant("organization", "owner", key=acme.cloud.owner)
