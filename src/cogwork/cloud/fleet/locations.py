"""Operations on locations, which form a tree in each organization."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.affected_parts import parts_below, parts_in_location
from cogwork.cloud.fleet.secrets import (
    SecretOwner,
    add_secret,
    delete_secret,
    delete_secrets,
    list_location_secrets,
    list_secrets,
)
from cogwork.cloud.identity.access import (
    CloudRole,
    ResourceType,
    find_role,
    list_above,
    organization_of,
    require_role,
)
from cogwork.cloud.identity.organization_roles import OrganizationRoles
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.operations.operation import Call, CloudOperation, reading, to_timestamp, writing
from cogwork.cloud.storage.insert import insert
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import exists, first, query, query_values, select_one
from cogwork.cloud.storage.tables import LocationRow
from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

_ID_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_ID_LENGTH: Final = 10
"""Length of an ID. It is short, because the host names of machines contain it."""

_SELECT: Final = (
    "SELECT location.*, organization.name AS organization_name FROM location "
    "JOIN organization ON organization.id = location.organization_id WHERE "
)


@dataclass(frozen=True, slots=True)
class _OwnedLocation(LocationRow):
    organization_name: str


class _MachineCount(NamedTuple):
    location_id: str
    machines: int


_MAX_DEPTH: Final = 10
"""Maximum depth of the tree. It is limited, because a machine accepts the keys of all locations
above the machine."""


class NotEmpty(CogworkError):
    """A location is in use and cannot be deleted."""

    status = "FAILED_PRECONDITION"


def create_location(
    tx: Transaction, call: Call, request: pb.CreateLocationRequest
) -> pb.CreateLocationResponse:
    organization = (ResourceType.ORGANIZATION, request.organization_id)
    parent = request.parent_location_id or None
    require_role(tx, call.actor, organization, CloudRole.OWNER)
    if parent is not None:
        _require_parent(tx, parent, request.organization_id)
        _require_depth(tx, parent, 1)
    location = "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))
    name = require_name(request.name)
    insert(tx, LocationRow(location, request.organization_id, parent, name, call.now))
    return pb.CreateLocationResponse(location=_read(tx, call, location))


def get_location(
    tx: Transaction, call: Call, request: pb.GetLocationRequest
) -> pb.GetLocationResponse:
    require_role(tx, call.actor, (ResourceType.LOCATION, request.location_id))
    return pb.GetLocationResponse(location=_read(tx, call, request.location_id))


def update_location(
    tx: Transaction, call: Call, request: pb.UpdateLocationRequest
) -> pb.UpdateLocationResponse:
    location = request.location_id
    require_role(tx, call.actor, (ResourceType.LOCATION, location), CloudRole.OWNER)
    if request.HasField("name"):
        tx.execute(
            "UPDATE location SET name = ? WHERE id = ?", require_name(request.name), location
        )
    if request.HasField("parent_location_id"):
        parent = request.parent_location_id or None
        if parent is not None:
            _require_parent(tx, parent, organization_of(tx, (ResourceType.LOCATION, location)))
            if (ResourceType.LOCATION, location) in list_above(tx, (ResourceType.LOCATION, parent)):
                raise InvalidRequest("a location cannot be inside itself; choose another parent")
            _require_depth(tx, parent, _count_levels(tx, location))
        tx.execute("UPDATE location SET parent_id = ? WHERE id = ?", parent, location)
        # Access lists change, because the location inherits other roles from the new parent.
        call.changed_parts += parts_below(tx, (ResourceType.LOCATION, location))
    return pb.UpdateLocationResponse(location=_read(tx, call, location))


def delete_location(
    tx: Transaction, call: Call, request: pb.DeleteLocationRequest
) -> pb.DeleteLocationResponse:
    location = request.location_id
    require_role(tx, call.actor, (ResourceType.LOCATION, location), CloudRole.OWNER)
    if exists(tx, "SELECT 1 FROM location WHERE parent_id = ? LIMIT 1", location):
        raise NotEmpty("the location has other locations inside; delete or move them first")
    if exists(tx, "SELECT 1 FROM machine WHERE location_id = ? LIMIT 1", location):
        raise NotEmpty("the location has machines; delete or move them first")
    delete_secrets(tx, call, SecretOwner.LOCATION, location)
    tx.execute(
        "DELETE FROM role_grant WHERE resource_type = 'location' AND resource_id = ?", location
    )
    tx.execute("DELETE FROM location WHERE id = ?", location)
    return pb.DeleteLocationResponse()


def list_locations(
    tx: Transaction, call: Call, request: pb.ListLocationsRequest
) -> pb.ListLocationsResponse:
    """List the locations where the actor has a role on the location or on one of its machines."""
    rows = query(
        tx,
        _OwnedLocation,
        f"{_SELECT} location.organization_id = ? ORDER BY location.name, location.id",
        request.organization_id,
    )
    roles = OrganizationRoles(tx, call.actor, request.organization_id)
    found = [(row, roles.find_for_location(row.id)) for row in rows]
    of_machines = _find_locations(tx, request.organization_id, roles.list_machines())
    counts = _count_machines(tx, request.organization_id)
    is_owner = any(role is CloudRole.OWNER for _, role in found)
    secrets = list_location_secrets(tx, call.keyring, request.organization_id) if is_owner else {}
    return pb.ListLocationsResponse(
        locations=[
            _describe(
                row,
                counts.get(row.id, 0),
                secrets.get(row.id, []) if role is CloudRole.OWNER else [],
            )
            for row, role in found
            if role is not None or row.id in of_machines
        ]
    )


def _find_locations(tx: Transaction, organization: str, machines: Iterable[str]) -> set[str]:
    """Return the locations of the given machines of an organization."""
    sql = (
        "SELECT location_id FROM machine JOIN location ON location.id = machine.location_id "
        "WHERE machine.id = ? AND location.organization_id = ?"
    )
    return {
        location for each in machines for location in query_values(tx, str, sql, each, organization)
    }


def list_organizations_of_location(
    tx: Transaction, call: Call, request: pb.GetOrganizationsWithAccessToLocationRequest
) -> pb.GetOrganizationsWithAccessToLocationResponse:
    """Return the organization that owns a location. No other organization has access to it.

    Actors that see the location in lists may call this.
    """
    row = first(query(tx, _OwnedLocation, f"{_SELECT} location.id = ?", request.location_id))
    if row is not None:
        roles = OrganizationRoles(tx, call.actor, row.organization_id)
        machines = _find_locations(tx, row.organization_id, roles.list_machines())
        if roles.find_for_location(row.id) is None and row.id not in machines:
            row = None
    if row is None:
        raise NotFound(
            f'there is no location "{request.location_id[:64]}", or it is not shared with you'
        )
    owner = pb.OrganizationIdentity(id=row.organization_id, name=row.organization_name)
    return pb.GetOrganizationsWithAccessToLocationResponse(organization_identities=[owner])


def location_auth(
    tx: Transaction, call: Call, request: pb.LocationAuthRequest
) -> pb.LocationAuthResponse:
    require_role(tx, call.actor, (ResourceType.LOCATION, request.location_id), CloudRole.OWNER)
    return pb.LocationAuthResponse(auth=_auth(tx, call, request.location_id))


def create_location_secret(
    tx: Transaction, call: Call, request: pb.CreateLocationSecretRequest
) -> pb.CreateLocationSecretResponse:
    require_role(tx, call.actor, (ResourceType.LOCATION, request.location_id), CloudRole.OWNER)
    add_secret(tx, call, SecretOwner.LOCATION, request.location_id)
    call.changed_parts += parts_in_location(tx, request.location_id)
    return pb.CreateLocationSecretResponse(auth=_auth(tx, call, request.location_id))


def delete_location_secret(
    tx: Transaction, call: Call, request: pb.DeleteLocationSecretRequest
) -> pb.DeleteLocationSecretResponse:
    require_role(tx, call.actor, (ResourceType.LOCATION, request.location_id), CloudRole.OWNER)
    delete_secret(tx, call, SecretOwner.LOCATION, request.location_id, request.secret_id)
    call.changed_parts += parts_in_location(tx, request.location_id)
    return pb.DeleteLocationSecretResponse()


def _require_parent(tx: Transaction, parent: str, organization: str) -> None:
    row = select_one(tx, LocationRow, "WHERE id = ?", parent)
    if row is None or row.organization_id != organization:
        raise NotFound(f'there is no location "{parent}" in this organization')


def _require_depth(tx: Transaction, parent: str, levels: int) -> None:
    """Raise InvalidRequest if the tree below the parent would become too deep."""
    above = [kind for kind, _ in list_above(tx, (ResourceType.LOCATION, parent))]
    if above.count(ResourceType.LOCATION) + levels > _MAX_DEPTH:
        raise InvalidRequest(
            f"locations can be at most {_MAX_DEPTH} levels deep; choose a parent that is higher up"
        )


def _count_levels(tx: Transaction, location: str) -> int:
    """Return the number of levels in the tree that begins with a location."""
    (levels,) = query_values(
        tx,
        int,
        "WITH RECURSIVE below (id, level) AS (SELECT id, 1 FROM location WHERE id = ? UNION ALL "
        "SELECT location.id, level + 1 FROM location JOIN below ON location.parent_id = below.id) "
        "SELECT MAX(level) AS levels FROM below",
        location,
    )
    return levels


def _read(tx: Transaction, call: Call, location: str) -> pb.Location:
    row = first(query(tx, _OwnedLocation, f"{_SELECT} location.id = ?", location))
    assert row is not None  # the caller has checked that the location exists
    counts = _count_machines(tx, row.organization_id)
    is_owner = find_role(tx, call.actor, (ResourceType.LOCATION, location)) is CloudRole.OWNER
    secrets = list_secrets(tx, call.keyring, SecretOwner.LOCATION, location) if is_owner else []
    return _describe(row, counts.get(location, 0), secrets)


def _describe(row: _OwnedLocation, machines: int, secrets: list[pb.SharedSecret]) -> pb.Location:
    """Describe a location. `secrets` is empty if the reader may not see them."""
    location, organization = row.id, row.organization_id
    found = pb.Location(
        id=location,
        name=row.name,
        parent_location_id=row.parent_id or "",
        organizations=[pb.LocationOrganization(organization_id=organization, primary=True)],
        created_on=to_timestamp(row.created_at),
        robot_count=machines,
        primary_org_identity=pb.OrganizationIdentity(id=organization, name=row.organization_name),
    )
    if secrets:
        found.auth.CopyFrom(_describe_auth(location, secrets))
    return found


def _count_machines(tx: Transaction, organization: str) -> dict[str, int]:
    """Return the number of machines by location, without empty locations."""
    rows = query(
        tx,
        _MachineCount,
        "SELECT location_id, COUNT(*) AS machines FROM machine "
        "WHERE organization_id = ? AND deleted_at IS NULL GROUP BY location_id",
        organization,
    )
    return {row.location_id: row.machines for row in rows}


def _auth(tx: Transaction, call: Call, location: str) -> pb.LocationAuth:
    return _describe_auth(location, list_secrets(tx, call.keyring, SecretOwner.LOCATION, location))


def _describe_auth(location: str, secrets: list[pb.SharedSecret]) -> pb.LocationAuth:
    newest = secrets[0].secret if secrets else ""
    return pb.LocationAuth(location_id=location, secret=newest, secrets=secrets)


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "CreateLocation": writing(create_location),
    "GetLocation": reading(get_location),
    "UpdateLocation": writing(update_location),
    "DeleteLocation": writing(delete_location),
    "GetOrganizationsWithAccessToLocation": reading(list_organizations_of_location),
    "ListLocations": reading(list_locations),
    "LocationAuth": reading(location_auth),
    "CreateLocationSecret": writing(create_location_secret),
    "DeleteLocationSecret": writing(delete_location_secret),
}
