"""`cogwork fleet orgs`, `locations`, `machines` and `parts`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any

from cogwork.cli.fleet.fleet_client import FleetClient, with_fleet
from cogwork.cli.fleet.inventory import (
    FleetMachine,
    find_location,
    find_machine,
    list_locations,
    list_machines,
    list_organizations,
    list_parts,
)
from cogwork.cli.fleet.online_state import OnlineState, read_online_state
from cogwork.cli.fleet.software import HEADINGS, read_software, software_cells
from cogwork.cli.table import align_rows, format_age
from cogwork.cli.terminal import EXIT_OK, print_error, print_json, print_text
from cogwork.core.sentences import join_names
from cogwork.logs.entry import format_timestamp
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from google.protobuf.json_format import MessageToDict  # noqa: E402
from google.protobuf.timestamp_pb2 import Timestamp  # noqa: E402
from viam.gen.app.v1 import app_pb2 as pb  # noqa: E402

_MAX_PARTS = 3
Rows = Sequence[Sequence[str]]


def orgs(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        found = list_organizations(client)
        if arguments.json:
            print_json([_describe_created(each) for each in found])
        else:
            print_table(organization_rows(found, time.time()))
        return EXIT_OK

    return with_fleet(run)


def locations(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        organizations = list_organizations(client)
        found = [(each, list_locations(client, each)) for each in organizations]
        if arguments.json:
            print_json([_describe_location(o, each) for o, listed in found for each in listed])
        elif not any(listed for _, listed in found):
            print_error("no locations; create one with: cogwork fleet location create NAME")
        else:
            print_table(location_rows(found))
        return EXIT_OK

    return with_fleet(run)


def machines(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        found = list(list_machines(client))
        if arguments.location is not None:
            location = find_location(client, arguments.location)
            found = [each for each in found if each.robot.location == location.id]
        parts, now = list_parts(client, found), time.time()
        if arguments.json:
            both = zip(found, parts, strict=True)
            print_json([_describe_machine(each, listed, now) for each, listed in both])
        elif not found:
            print_error("no machines; create one with: cogwork fleet machine create NAME")
        else:
            print_table(machine_rows(found, parts, now))
        return EXIT_OK

    return with_fleet(run)


def parts(arguments: argparse.Namespace) -> int:
    def run(client: FleetClient) -> int:
        machine = find_machine(client, arguments.machine)
        (found,), now = list_parts(client, [machine]), time.time()
        if arguments.json:
            print_json([describe_part(each, now) for each in found])
        else:
            print_table(part_rows(found, now))
            for part in found:
                for notice in read_notices(part):
                    print_text(f"{part.name}: {notice}")
        return EXIT_OK

    return with_fleet(run)


def print_table(rows: Iterable[Sequence[str]]) -> None:
    for line in align_rows(rows):
        print_text(line)


def organization_rows(found: Sequence[pb.Organization], now: float) -> Rows:
    rows = [(each.name, _format_created(each.created_on, now), each.id) for each in found]
    return [("NAME", "AGE", "ID"), *rows]


def location_rows(found: Sequence[tuple[pb.Organization, Sequence[pb.Location]]]) -> Rows:
    names = {each.id: each.name for _, listed in found for each in listed}
    rows = [
        (
            each.name,
            names.get(each.parent_location_id, each.parent_location_id),
            str(each.robot_count),
            organization.name,
            each.id,
        )
        for organization, listed in found
        for each in listed
    ]
    return [("NAME", "INSIDE", "MACHINES", "ORGANIZATION", "ID"), *rows]


def machine_rows(
    found: Sequence[FleetMachine], parts: Sequence[Sequence[pb.RobotPart]], now: float
) -> Rows:
    rows = [
        (
            each.robot.name,
            each.location,
            join_names([part.name for part in listed], _MAX_PARTS),
            *_find_state(each.robot, listed, now).cells(now),
            each.robot.id,
        )
        for each, listed in zip(found, parts, strict=True)
    ]
    return [("NAME", "LOCATION", "PARTS", "STATE", "LAST SEEN", "ID"), *rows]


def part_rows(found: Sequence[pb.RobotPart], now: float) -> Rows:
    """Return the rows of the table. Versions are included if an agent reports them."""
    software = [read_software(each) for each in found]
    has_software = any(software)
    rows = [
        (
            each.name,
            "main" if each.main_part else "",
            *read_online_state(each, now).cells(now),
            *(software_cells(known) if has_software else ()),
            each.fqdn,
            each.id,
        )
        for each, known in zip(found, software, strict=True)
    ]
    more = HEADINGS if has_software else ()
    return [("NAME", "ROLE", "STATE", "LAST SEEN", *more, "ADDRESS", "ID"), *rows]


def describe_part(part: pb.RobotPart, now: float) -> dict[str, Any]:
    """Describe a part without its secrets, as JSON."""
    return {
        **_describe_created(part),
        "machine": part.robot,
        "location": part.location_id,
        "main": part.main_part,
        "fqdn": part.fqdn,
        "local_fqdn": part.local_fqdn,
        **read_online_state(part, now).as_json(),
        "software": read_software(part),
        "notices": read_notices(part),
    }


def read_notices(part: pb.RobotPart) -> list[str]:
    """Return the problems with a part's connection to the cloud."""
    found = MessageToDict(part.user_supplied_info).get("notices")
    return list(map(str, found)) if isinstance(found, list) else []


def _find_state(robot: pb.Robot, parts: Sequence[pb.RobotPart], now: float) -> OnlineState:
    """Return the state of a machine, or of its main part if the cloud does not report the
    machine's."""
    state = read_online_state(robot, now)
    if state.name is None and parts:
        return read_online_state(parts[0], now)
    return state


def _describe_machine(
    machine: FleetMachine, parts: Sequence[pb.RobotPart], now: float
) -> dict[str, Any]:
    return {
        **_describe_created(machine.robot),
        "location": {"id": machine.robot.location, "name": machine.location},
        "organization": {"id": machine.organization.id, "name": machine.organization.name},
        **_find_state(machine.robot, parts, now).as_json(),
        "parts": [{"id": each.id, "name": each.name, "main": each.main_part} for each in parts],
    }


def _describe_location(organization: pb.Organization, location: pb.Location) -> dict[str, Any]:
    return {
        **_describe_created(location),
        "parent": location.parent_location_id or None,
        "organization": {"id": organization.id, "name": organization.name},
        "machines": location.robot_count,
    }


def _describe_created(
    found: pb.Organization | pb.Location | pb.Robot | pb.RobotPart,
) -> dict[str, Any]:
    created = format_timestamp(found.created_on.ToMicroseconds() / 1e6)
    return {"id": found.id, "name": found.name, "created": created}


def _format_created(created: Timestamp, now: float) -> str:
    return format_age(now - created.ToMicroseconds() / 1e6)
