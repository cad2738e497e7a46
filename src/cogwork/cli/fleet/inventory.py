"""The content of a cloud: organizations, locations, machines and their parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import grpc

from cogwork.cli.fleet.fleet_client import CloudRefused, FleetClient
from cogwork.cli.fleet.selection import SelectionChoice, select, select_only
from cogwork.cli.terminal import ProgressLine, format_bar
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class FleetMachine(NamedTuple):
    robot: pb.Robot
    location: str
    """The name of the machine's location, or the ID if the location is not shared with the user."""
    organization: pb.Organization


def list_organizations(client: FleetClient) -> Sequence[pb.Organization]:
    reply = client.call(
        "ListOrganizations", pb.ListOrganizationsRequest(), pb.ListOrganizationsResponse
    )
    return reply.organizations


def list_locations(client: FleetClient, organization: pb.Organization) -> Sequence[pb.Location]:
    request = pb.ListLocationsRequest(organization_id=organization.id)
    return client.call("ListLocations", request, pb.ListLocationsResponse).locations


def list_machines(client: FleetClient) -> Iterator[FleetMachine]:
    """Yield the machines of all organizations on which the user has a role."""
    for organization in list_organizations(client):
        names = {each.id: each.name for each in list_locations(client, organization)}
        request = pb.ListRobotsForOrgRequest(org_id=organization.id)
        reply = client.call("ListRobotsForOrg", request, pb.ListRobotsForOrgResponse)
        for robot in reply.robots:
            yield FleetMachine(robot, names.get(robot.location, robot.location), organization)


def list_parts(client: FleetClient, machines: Sequence[FleetMachine]) -> list[list[pb.RobotPart]]:
    """Return the parts of each machine, the main part first."""
    requests = [pb.GetRobotPartsRequest(robot_id=each.robot.id) for each in machines]
    found = []
    with ProgressLine() as progress:
        for reply in client.call_each("GetRobotParts", requests, pb.GetRobotPartsResponse):
            found.append(list(reply.parts))
            progress.show(f"reading machines {format_bar(len(found), len(requests))}")
    return found


def find_organization(client: FleetClient, wanted: str | None) -> pb.Organization:
    """Return the organization with this name or ID; None selects the only one. Raise
    CommandError."""
    choices = [
        (SelectionChoice(each.id, (each.name,)), each) for each in list_organizations(client)
    ]
    if wanted is None:
        return select_only("organization", choices, "--org", "cogwork-cloud init")
    return select("organization", wanted, choices, "cogwork fleet orgs")


def find_location(client: FleetClient, wanted: str | None) -> pb.Location:
    """Return the location with this name or ID; None selects the only one. Raise CommandError."""
    choices = [
        (SelectionChoice(each.id, (each.name,), organization.name), each)
        for organization in list_organizations(client)
        for each in list_locations(client, organization)
    ]
    if wanted is None:
        create = "cogwork fleet location create NAME"
        return select_only("location", choices, "--location", create)
    return select("location", wanted, choices, "cogwork fleet locations")


def find_machine(client: FleetClient, wanted: str) -> FleetMachine:
    """Return the machine with this name or ID. Raise CommandError."""
    choices = (
        (SelectionChoice(each.robot.id, (each.robot.name,), f"in {each.location}"), each)
        for each in list_machines(client)
    )
    return select("machine", wanted, choices, "cogwork fleet machines")


def find_part(client: FleetClient, wanted: str) -> pb.RobotPart:
    """Return the part with this name or ID. The name of a machine selects its main part.

    Raise CommandError.
    """
    if _UUID.fullmatch(wanted) and (part := _find_part_by_id(client, wanted)) is not None:
        return part
    machines = list(list_machines(client))
    choices = (
        (describe_part_choice(machine, part), part)
        for machine, parts in zip(machines, list_parts(client, machines), strict=True)
        for part in parts
    )
    return read_part(client, select("part", wanted, choices, "cogwork fleet machines").id)


def describe_part_choice(machine: FleetMachine, part: pb.RobotPart) -> SelectionChoice:
    robot = machine.robot
    names = (part.name, robot.name, robot.id) if part.main_part else (part.name,)
    return SelectionChoice(part.id, names, f"of machine {robot.name} in {machine.location}")


def read_part(client: FleetClient, part: str) -> pb.RobotPart:
    request = pb.GetRobotPartRequest(id=part)
    return client.call("GetRobotPart", request, pb.GetRobotPartResponse).part


def _find_part_by_id(client: FleetClient, part: str) -> pb.RobotPart | None:
    try:
        return read_part(client, part)
    except CloudRefused as error:
        if error.code is grpc.StatusCode.NOT_FOUND:
            return None  # not a part: perhaps a machine's ID, or a name that looks like an ID
        raise
