"""Organizations: who creates and sees them."""

from __future__ import annotations

import pytest
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.core.errors import InvalidRequest


def test_everyone_sees_organizations_with_a_role_in_them(acme: OwnedOrganization) -> None:
    guest = acme.create(acme.grant("robot", "operator")).id
    for key in (acme.tenant.key, guest):
        (found,) = acme.cloud.run(key, pb.ListOrganizationsRequest()).organizations
        assert (found.id, found.name) == (acme.tenant.organization, "Acme")
    stranger = acme.cloud.add_tenant("Other").key
    (other,) = acme.cloud.run(stranger, pb.ListOrganizationsRequest()).organizations
    assert other.name == "Other"


def test_organization_is_renamed(acme: OwnedOrganization) -> None:
    organization = acme.tenant.organization
    request = pb.UpdateOrganizationRequest(organization_id=organization, name="Acme Ltd")
    assert acme.run(request).organization.name == "Acme Ltd"
    # A request without a name changes nothing.
    acme.run(pb.UpdateOrganizationRequest(organization_id=organization))
    found = acme.run(pb.GetOrganizationRequest(organization_id=organization))
    assert found.organization.name == "Acme Ltd"


@pytest.mark.parametrize("name", ["", " ", "x" * 1000, "a\nb", "a\u202eb"])
def test_name_that_cannot_be_shown_is_refused(acme: OwnedOrganization, name: str) -> None:
    with pytest.raises(InvalidRequest):
        acme.cloud.run(acme.cloud.owner, pb.CreateOrganizationRequest(name=name))
