"""Organizations and locations, field by field."""

from __future__ import annotations

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.app_client.owner import Owner, at
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1 import app_pb2 as pb

ENABLED = pb.SharedSecret.State.STATE_ENABLED


async def test_organizations(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    acme = pb.Organization(id=owner.organization, name="Acme", created_on=at(0))
    await owner.wait()
    created = await client.create_organization("Bölt & Söhne")
    bolt = pb.Organization(id=created.id, name="Bölt & Söhne", created_on=at(1))
    check(pb.CreateOrganizationResponse(organization=bolt))
    assert created.id != owner.organization
    assert await client.list_organizations() == [acme, bolt]
    check(pb.ListOrganizationsResponse(organizations=[acme, bolt]))
    assert await client.get_organization(created.id) == bolt
    check(pb.GetOrganizationResponse(organization=bolt))


async def test_only_owners_of_the_hosting_organization_create_others(
    owner: Owner,
) -> None:
    hosting, app, cloud = owner.organization, owner.client, owner.cloud
    tenant = (await app.create_organization("Tenant")).id
    location = (await app.create_location(hosting, "Hall")).id
    roles = {
        "operator of the host": (
            hosting,
            APIKeyAuthorization("operator", "organization", hosting),
        ),
        "owner of a location of the host": (
            hosting,
            APIKeyAuthorization("owner", "location", location),
        ),
        "owner of another": (tenant, APIKeyAuthorization("owner", "organization", tenant)),
    }
    for who, (organization, role) in roles.items():
        key, key_id = await app.create_key(organization, [role], who)
        other = await cloud.connect(key_id, key)
        with pytest.raises(GRPCError) as refused:
            await other.app_client.create_organization(who)
        other.close()
        assert refused.value.status is Status.PERMISSION_DENIED, who
        assert "ask one of them for an organization" in str(refused.value.message)
    key, key_id = await app.create_key(
        hosting, [APIKeyAuthorization("owner", "organization", hosting)], "second owner"
    )
    second = await cloud.connect(key_id, key)
    assert (await second.app_client.create_organization("Another")).name == "Another"
    second.close()
    assert {each.name for each in await app.list_organizations()} == {"Acme", "Tenant"}


async def test_locations(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    await owner.wait()
    made = await client.create_location(owner.organization, "Hall 1")
    hall = pb.Location(
        id=made.id,
        name="Hall 1",
        organizations=[pb.LocationOrganization(organization_id=owner.organization, primary=True)],
        created_on=at(1),
        primary_org_identity=pb.OrganizationIdentity(id=owner.organization, name="Acme"),
    )
    check(pb.CreateLocationResponse(location=hall))
    assert await client.get_location(made.id) == hall
    check(pb.GetLocationResponse(location=hall))

    inside = await client.create_location(owner.organization, "Cell", made.id)
    assert inside.parent_location_id == made.id
    await client.new_robot("press", made.id)
    hall.robot_count = 1
    assert await client.list_locations(owner.organization) == [inside, hall]
    check(pb.ListLocationsResponse(locations=[inside, hall]))

    await client.update_location(inside.id, "Zelle", "")
    inside.name, inside.parent_location_id = "Zelle", ""
    check(pb.UpdateLocationResponse(location=inside))
    await client.update_location(inside.id, None, made.id)
    inside.parent_location_id = made.id
    check(pb.UpdateLocationResponse(location=inside))

    await client.delete_location(inside.id)
    check(pb.DeleteLocationResponse())
    assert await client.list_locations(owner.organization) == [hall]
    with pytest.raises(GRPCError) as refused:
        await client.get_location(inside.id)
    assert refused.value.status is Status.NOT_FOUND


async def test_secrets_of_a_location(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    location = await client.create_location(owner.organization, "Hall 1")
    none = pb.LocationAuth(location_id=location.id)
    assert await client.location_auth(location.id) == none
    check(pb.LocationAuthResponse(auth=none))
    first = await client.create_location_secret(location.id)
    (old,) = first.secrets
    assert len(old.secret) >= 22  # 128 bits
    await owner.wait()
    both = await client.create_location_secret(location.id)
    new, _ = both.secrets
    expected = pb.LocationAuth(
        secret=new.secret,
        location_id=location.id,
        secrets=[
            pb.SharedSecret(id=new.id, secret=new.secret, created_on=at(1), state=ENABLED),
            old,
        ],
    )
    check(pb.CreateLocationSecretResponse(auth=expected))
    assert new.secret != old.secret
    await client.delete_location_secret(old.id, location.id)
    check(pb.DeleteLocationSecretResponse())
    assert list((await client.location_auth(location.id)).secrets) == [new]
    await client.delete_location_secret(new.id, location.id)
    assert await client.location_auth(location.id) == none
