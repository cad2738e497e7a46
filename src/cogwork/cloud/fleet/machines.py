"""Operations on machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.host_labels import assign_label
from cogwork.cloud.fleet.parts import add_part, delete_part, list_parts
from cogwork.cloud.identity.access import (
    CloudRole,
    ResourceType,
    organization_of,
    require_role,
)
from cogwork.cloud.identity.organization_roles import OrganizationRoles
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
from cogwork.cloud.storage.tables import MachineRow
from cogwork.core.errors import InvalidRequest


def new_robot(tx: Transaction, call: Call, request: pb.NewRobotRequest) -> pb.NewRobotResponse:
    """Create a machine with its main part."""
    location = (ResourceType.LOCATION, request.location)
    require_role(tx, call.actor, location, CloudRole.OWNER)
    name, machine = require_name(request.name), new_id()
    organization = organization_of(tx, location)
    insert(
        tx,
        MachineRow(
            *(machine, organization, request.location, name, call.now),
            deleted_at=None,
            last_access_at=None,
        ),
    )
    add_part(tx, call, machine, f"{name}-main", is_main=True)
    return pb.NewRobotResponse(id=machine)


def get_robot(tx: Transaction, call: Call, request: pb.GetRobotRequest) -> pb.GetRobotResponse:
    require_role(tx, call.actor, (ResourceType.MACHINE, request.id))
    return pb.GetRobotResponse(robot=_read(tx, call, request.id))


def list_robots(
    tx: Transaction, call: Call, request: pb.ListRobotsRequest
) -> pb.ListRobotsResponse:
    require_role(tx, call.actor, (ResourceType.LOCATION, request.location_id))
    return pb.ListRobotsResponse(robots=_in_location(tx, call, request.location_id))


def list_robots_for_organization(
    tx: Transaction, call: Call, request: pb.ListRobotsForOrgRequest
) -> pb.ListRobotsForOrgResponse:
    """List the machines on which the actor has a role."""
    rows = select(
        tx,
        MachineRow,
        "WHERE organization_id = ? AND deleted_at IS NULL ORDER BY name, id",
        request.org_id,
    )
    roles = OrganizationRoles(tx, call.actor, request.org_id)
    return pb.ListRobotsForOrgResponse(
        robots=[
            _describe(call, row)
            for row in rows
            if roles.find_for_machine(row.id, row.location_id) is not None
        ]
    )


def list_robots_for_locations(
    tx: Transaction, call: Call, request: pb.ListRobotsForLocationsRequest
) -> pb.ListRobotsForLocationsResponse:
    for location in request.location_ids:
        require_role(tx, call.actor, (ResourceType.LOCATION, location))
    found = [_in_location(tx, call, each) for each in dict.fromkeys(request.location_ids)]
    return pb.ListRobotsForLocationsResponse(robots=[each for robots in found for each in robots])


def update_robot(
    tx: Transaction, call: Call, request: pb.UpdateRobotRequest
) -> pb.UpdateRobotResponse:
    """Rename a machine, and move it if another location is given."""
    machine = (ResourceType.MACHINE, request.id)
    require_role(tx, call.actor, machine, CloudRole.OWNER)
    if request.name:
        tx.execute(
            "UPDATE machine SET name = ? WHERE id = ?", require_name(request.name), request.id
        )
    if request.location:
        location = (ResourceType.LOCATION, request.location)
        require_role(tx, call.actor, location, CloudRole.OWNER)
        if organization_of(tx, location) != organization_of(tx, machine):
            raise InvalidRequest("a machine cannot move to another organization; create it there")
        _move(tx, call, request.id, request.location)
    call.changed_parts += [part.id for part in list_parts(tx, request.id)]
    return pb.UpdateRobotResponse(robot=_read(tx, call, request.id))


def delete_robot(
    tx: Transaction, call: Call, request: pb.DeleteRobotRequest
) -> pb.DeleteRobotResponse:
    """Delete a machine and its credentials. Keep its history and its logs."""
    require_role(tx, call.actor, (ResourceType.MACHINE, request.id), CloudRole.OWNER)
    for part in list_parts(tx, request.id):
        delete_part(tx, call, part.id)
    tx.execute(
        "DELETE FROM role_grant WHERE resource_type = 'robot' AND resource_id = ?", request.id
    )
    tx.execute("UPDATE machine SET deleted_at = ? WHERE id = ?", call.now, request.id)
    return pb.DeleteRobotResponse()


def _move(tx: Transaction, call: Call, machine: str, location: str) -> None:
    """Move a machine to a location, if it is in another one. Its parts get new host names."""
    changed = tx.execute(
        "UPDATE machine SET location_id = ? WHERE id = ? AND location_id <> ?",
        *(location, machine, location),
    )
    if changed:
        for part in list_parts(tx, machine):
            assign_label(tx, call.now, part.id, location, part.name)


def _read(tx: Transaction, call: Call, machine: str) -> pb.Robot:
    row = select_one(tx, MachineRow, "WHERE id = ?", machine)
    assert row is not None  # the caller has checked that the machine exists
    return _describe(call, row)


def _in_location(tx: Transaction, call: Call, location: str) -> Sequence[pb.Robot]:
    rows = select(
        tx,
        MachineRow,
        "WHERE location_id = ? AND deleted_at IS NULL ORDER BY name, id",
        location,
    )
    return [_describe(call, row) for row in rows]


def _describe(call: Call, row: MachineRow) -> pb.Robot:
    seen = call.presence.find(row)
    return pb.Robot(
        id=row.id,
        name=row.name,
        location=row.location_id,
        created_on=to_timestamp(row.created_at),
        online_state=seen.state,
        seconds_since_online=seen.seconds_since,
        last_access=to_timestamp(seen.last_access) if seen.last_access is not None else None,
    )


OPERATIONS: Final[dict[str, CloudOperation]] = {
    "NewRobot": writing(new_robot),
    "GetRobot": reading(get_robot),
    "ListRobots": reading(list_robots),
    "ListRobotsForOrg": reading(list_robots_for_organization),
    "ListRobotsForLocations": reading(list_robots_for_locations),
    "UpdateRobot": writing(update_robot),
    "DeleteRobot": writing(delete_robot),
}
