"""`cogwork fleet location create`, and `cogwork fleet machine create`, `delete` and `rename`."""

from __future__ import annotations

import argparse
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.confirmation import confirm
from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import (
    find_location,
    find_machine,
    find_organization,
    list_machines,
)
from cogwork.cli.fleet.machine_file import MachineFile, require_writable
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, print_error, print_json, print_text
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402


def create_location(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        organization = find_organization(client, arguments.org)
        request = pb.CreateLocationRequest(organization_id=organization.id, name=arguments.name)
        made = client.call("CreateLocation", request, pb.CreateLocationResponse).location
        if arguments.json:
            print_json({"id": made.id, "name": made.name})
        else:
            print_text(f"created location {made.name} with the ID {made.id}")
        return EXIT_OK

    return with_fleet(run)


def create(arguments: argparse.Namespace) -> int:
    return with_fleet(lambda client: _create(client, arguments))


def delete(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        machine = find_machine(client, arguments.machine)
        name = f"machine {machine.robot.name} in {machine.location}"
        if not arguments.yes and not confirm(
            f"Delete {name}? It can no longer log in. Its logs stay until they are 30 days old."
        ):
            print_error("nothing was deleted")
            return EXIT_FAILURE
        request = pb.DeleteRobotRequest(id=machine.robot.id)
        client.call("DeleteRobot", request, pb.DeleteRobotResponse)
        print_text(f"deleted {name}")
        return EXIT_OK

    return with_fleet(run)


def rename(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        robot = find_machine(client, arguments.machine).robot
        request = pb.UpdateRobotRequest(id=robot.id, name=arguments.name, location=robot.location)
        renamed = client.call("UpdateRobot", request, pb.UpdateRobotResponse).robot
        print_text(f"renamed machine {robot.name} to {renamed.name}; its parts keep their names")
        return EXIT_OK

    return with_fleet(run)


def _create(client: FleetClient, arguments: argparse.Namespace) -> int:
    output = Path(arguments.output) if arguments.output is not None else None
    if output is not None:
        require_writable(output)
    location = find_location(client, arguments.location)
    _require_unused_name(client, arguments.name, location)
    request = pb.NewRobotRequest(name=arguments.name, location=location.id)
    machine = client.call("NewRobot", request, pb.NewRobotResponse).id
    parts = client.call(
        "GetRobotParts", pb.GetRobotPartsRequest(robot_id=machine), pb.GetRobotPartsResponse
    ).parts
    part = parts[0]
    file = MachineFile(part, client.login, output)
    file.write("the machine was created")
    if arguments.json:
        described = {"id": machine, "name": arguments.name, "location": location.id}
        print_json({**described, "part": {"id": part.id, "fqdn": part.fqdn}, **file.as_json()})
    else:
        file.print(f"created machine {arguments.name} in {location.name}; its name is {part.fqdn}")
    return EXIT_OK


def _require_unused_name(client: FleetClient, name: str, location: pb.Location) -> None:
    """Raise CommandError if the name is in use, because both machines would have the same host
    name."""
    for each in list_machines(client):
        if (each.robot.name, each.robot.location) == (name, location.id):
            raise CommandError(
                f'{location.name} has a machine "{name}" already ({each.robot.id}); choose another '
                "name, or another location with --location"
            )
