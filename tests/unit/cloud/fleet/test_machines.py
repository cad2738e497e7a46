"""Machines and their parts: creating, moving, deleting, and what follows from it."""

from __future__ import annotations

import pytest
from tests.support.cloud.organization import OwnedOrganization
from tests.support.cloud.tenants import Tenant
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.locations import NotEmpty
from cogwork.cloud.fleet.secrets import SecretLimit
from cogwork.core.errors import InvalidRequest, NotFound


def get_part(acme: OwnedOrganization, part: str = "") -> pb.RobotPart:
    request = pb.GetRobotPartRequest(id=part or acme.tenant.part)
    found: pb.RobotPart = acme.run(request).part
    return found


def create_location(acme: OwnedOrganization, tenant: Tenant | None = None) -> str:
    organization = (tenant or acme.tenant).organization
    request = pb.CreateLocationRequest(organization_id=organization, name="Yard")
    return str(acme.cloud.run((tenant or acme.tenant).key, request).location.id)


def test_new_machine_has_a_main_part_with_a_secret(acme: OwnedOrganization) -> None:
    part = get_part(acme)
    assert (part.name, part.main_part, part.secret != "") == ("press-main", True, True)
    assert acme.run(pb.GetRobotRequest(id=acme.tenant.machine)).robot.name == "press"


def test_renamed_machine_is_told(acme: OwnedOrganization) -> None:
    request = pb.UpdateRobotRequest(id=acme.tenant.machine, name="lathe")
    assert acme.run(request).robot.name == "lathe"
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [])


def test_moved_machine_has_a_name_of_its_new_location(acme: OwnedOrganization) -> None:
    yard, before = create_location(acme), get_part(acme).fqdn
    acme.run(pb.UpdateRobotRequest(id=acme.tenant.machine, location=yard))
    assert acme.changed == {acme.tenant.part}
    part = get_part(acme)
    assert (part.location_id, part.fqdn) == (yard, before.replace(acme.tenant.location, yard))
    listed = acme.run(pb.ListRobotsRequest(location_id=acme.tenant.location)).robots
    assert list(listed) == []


def test_machine_stays_in_its_organization(acme: OwnedOrganization) -> None:
    other = acme.cloud.add_tenant("Other")
    move = pb.UpdateRobotRequest(id=acme.tenant.machine, location=other.location)
    with pytest.raises(NotFound):
        acme.run(move)
    # The host owns both.
    with pytest.raises(InvalidRequest, match="another organization"):
        acme.cloud.run(acme.cloud.owner, move)


def test_deleted_machine_ends_and_its_location_can_be_deleted_only_if_it_is_empty(
    acme: OwnedOrganization,
) -> None:
    delete_location = pb.DeleteLocationRequest(location_id=acme.tenant.location)
    with pytest.raises(NotEmpty, match="machines"):
        acme.run(delete_location)
    acme.run(pb.DeleteRobotRequest(id=acme.tenant.machine))
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [acme.tenant.part])
    for request in (
        pb.GetRobotRequest(id=acme.tenant.machine),
        pb.GetRobotPartRequest(id=acme.tenant.part),
    ):
        with pytest.raises(NotFound):
            acme.run(request)


def test_location_with_others_inside_is_not_deleted(acme: OwnedOrganization) -> None:
    yard = create_location(acme)
    inside = pb.CreateLocationRequest(
        organization_id=acme.tenant.organization, name="Gate", parent_location_id=yard
    )
    gate = acme.run(inside).location.id
    with pytest.raises(NotEmpty, match="inside"):
        acme.run(pb.DeleteLocationRequest(location_id=yard))
    for each in (gate, yard):
        acme.run(pb.DeleteLocationRequest(location_id=each))
        with pytest.raises(NotFound):
            acme.run(pb.GetLocationRequest(location_id=each))


def test_parts_are_added_and_another_one_can_be_main(acme: OwnedOrganization) -> None:
    tenant = acme.tenant
    request = pb.NewRobotPartRequest(robot_id=tenant.machine, part_name="arm")
    arm = acme.run(request).part_id
    with pytest.raises(InvalidRequest, match="main part cannot be deleted"):
        acme.run(pb.DeleteRobotPartRequest(part_id=tenant.part))
    acme.run(pb.MarkPartAsMainRequest(part_id=arm))
    assert [get_part(acme, each).main_part for each in (arm, tenant.part)] == [True, False]
    acme.run(pb.DeleteRobotPartRequest(part_id=tenant.part))
    assert (acme.changed, acme.ended) == ({tenant.part}, [tenant.part])
    left = acme.run(pb.GetRobotPartsRequest(robot_id=tenant.machine)).parts
    assert [each.id for each in left] == [arm]


def test_part_is_found_by_its_name_in_a_location_only(acme: OwnedOrganization) -> None:
    request = pb.GetRobotPartByNameAndLocationRequest(
        name="press-main", location_id=acme.tenant.location
    )
    assert acme.run(request).part.id == acme.tenant.part
    request.location_id = create_location(acme)
    with pytest.raises(NotFound):
        acme.run(request)


def test_restart_is_told_to_the_part(acme: OwnedOrganization) -> None:
    acme.run(pb.MarkPartForRestartRequest(part_id=acme.tenant.part))
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [])


def test_part_has_two_secrets_while_one_is_replaced(acme: OwnedOrganization) -> None:
    tenant = acme.tenant
    create = pb.CreateRobotPartSecretRequest(part_id=tenant.part)
    acme.cloud.advance(1)
    made = acme.run(create).part
    assert (len(made.secrets), acme.changed, acme.ended) == (2, {tenant.part}, [])
    with pytest.raises(SecretLimit, match="delete one first"):
        acme.run(create)
    acme.run(pb.DeleteRobotPartSecretRequest(part_id=tenant.part, secret_id=tenant.secret))
    assert acme.ended == [tenant.part, tenant.secret]
    assert [each.id for each in get_part(acme).secrets] == [made.secrets[0].id]


def test_only_secret_of_a_part_is_replaced_by_another(acme: OwnedOrganization) -> None:
    tenant, before = acme.tenant, get_part(acme).secret
    acme.run(pb.DeleteRobotPartSecretRequest(part_id=tenant.part, secret_id=tenant.secret))
    after = get_part(acme).secret
    assert after not in ("", before)
    with pytest.raises(NotFound, match="no secret"):
        acme.run(pb.DeleteRobotPartSecretRequest(part_id=tenant.part, secret_id=tenant.secret))


def test_secrets_of_a_location_are_for_its_own_machines(acme: OwnedOrganization) -> None:
    location, yard = acme.tenant.location, create_location(acme)
    acme.run(pb.UpdateLocationRequest(location_id=location, parent_location_id=yard))
    acme.run(pb.CreateLocationSecretRequest(location_id=yard))
    assert acme.changed == set()
    auth = acme.run(pb.CreateLocationSecretRequest(location_id=location)).auth
    assert acme.changed == {acme.tenant.part}
    assert auth.secret == auth.secrets[0].secret != ""
    request = pb.DeleteLocationSecretRequest(location_id=location, secret_id=auth.secrets[0].id)
    acme.run(request)
    assert acme.ended == [location, auth.secrets[0].id]
    assert acme.run(pb.LocationAuthRequest(location_id=location)).auth.secret == ""


def test_moved_location_changes_the_access_to_its_machines(acme: OwnedOrganization) -> None:
    yard = create_location(acme)
    guest = acme.create(acme.grant("location", "operator", yard)).id
    look = pb.GetRobotRequest(id=acme.tenant.machine)
    for parent, is_inside in ((yard, True), ("", False)):
        move = pb.UpdateLocationRequest(location_id=acme.tenant.location, parent_location_id=parent)
        acme.run(move)
        assert acme.changed == {acme.tenant.part}
        if is_inside:
            assert acme.cloud.run(guest, look).robot.id == acme.tenant.machine
        else:
            with pytest.raises(NotFound):
                acme.cloud.run(guest, look)


def test_operators_see_no_secrets(acme: OwnedOrganization) -> None:
    acme.run(pb.CreateLocationSecretRequest(location_id=acme.tenant.location))
    guest = acme.create(acme.grant("organization", "operator")).id
    part = acme.cloud.run(guest, pb.GetRobotPartRequest(id=acme.tenant.part)).part
    assert (part.secret, list(part.secrets)) == ("", [])
    listing = pb.ListLocationsRequest(organization_id=acme.tenant.organization)
    (seen,) = acme.cloud.run(guest, listing).locations
    assert not seen.HasField("auth")
    (owned,) = acme.run(listing).locations
    assert owned.auth.secret != ""


def test_key_of_one_machine_lists_its_location_and_who_owns_it(acme: OwnedOrganization) -> None:
    """Go's command line finds a machine by its ID in this way."""
    guest = acme.create(acme.grant("robot", "operator")).id
    elsewhere = acme.run(
        pb.CreateLocationRequest(organization_id=acme.tenant.organization, name="Elsewhere")
    ).location.id
    listing = pb.ListLocationsRequest(organization_id=acme.tenant.organization)
    (seen,) = acme.cloud.run(guest, listing).locations
    assert seen.id == acme.tenant.location
    assert not seen.HasField("auth")
    asked = pb.GetOrganizationsWithAccessToLocationRequest(location_id=acme.tenant.location)
    (owner,) = acme.cloud.run(guest, asked).organization_identities
    assert owner.id == acme.tenant.organization
    assert acme.run(asked).organization_identities == [owner]
    asked.location_id = elsewhere
    with pytest.raises(NotFound, match="or it is not shared with you"):
        acme.cloud.run(guest, asked)
