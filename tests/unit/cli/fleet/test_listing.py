from __future__ import annotations

import json
from typing import Any

from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cli.fleet.inventory import FleetMachine, describe_part_choice
from cogwork.cli.fleet.keys import key_rows
from cogwork.cli.fleet.listing import describe_part, location_rows, machine_rows, part_rows

NOW = 1_000_000.0
ACME = pb.Organization(id="o", name="Acme")
MAIN = pb.RobotPart(id="p1", name="press-main", main_part=True, fqdn="press-main.hall.test")
ARM = pb.RobotPart(
    id="p2", name="arm", online_state=pb.OnlineState.ONLINE_STATE_ONLINE, secret="hidden"
)


def machine(robot: pb.Robot | None = None) -> FleetMachine:
    return FleetMachine(robot or pb.Robot(id="m", name="press", location="l"), "Hall 1", ACME)


def test_machine_has_its_parts_and_when_it_was_seen() -> None:
    offline = pb.Robot(
        id="m",
        name="press",
        online_state=pb.OnlineState.ONLINE_STATE_OFFLINE,
        seconds_since_online=7200,
    )
    head, row, unknown, main = machine_rows(
        [machine(offline), machine(), machine()], [[MAIN, ARM], [], [ARM]], NOW
    )
    assert head == ("NAME", "LOCATION", "PARTS", "STATE", "LAST SEEN", "ID")
    assert row == ("press", "Hall 1", "press-main, arm", "offline", "2h ago", "m")
    assert unknown == ("press", "Hall 1", "", "-", "-", "m")
    # Without a state of its own, a machine has that of its main part.
    assert main == ("press", "Hall 1", "arm", "online", "0s ago", "m")


def test_part_that_was_never_seen_awaits_its_setup() -> None:
    new = pb.RobotPart(id="p", name="new", online_state=pb.OnlineState.ONLINE_STATE_AWAITING_SETUP)
    _, row, main = part_rows([new, MAIN], NOW)
    assert row == ("new", "", "awaiting setup", "-", "", "p")
    assert main == ("press-main", "main", "-", "-", "press-main.hall.test", "p1")


def test_part_has_its_versions_and_what_became_of_its_update() -> None:
    report = {"version": "2.0.0", "outcome": "rolled_back", "reason": "it crashed"}
    updated = pb.RobotPart(id="p", name="new")
    software: dict[str, Any] = {
        "server": {"running": "1.0.0", "last_report": report},
        "agent": {"running": "0.1.0"},
    }
    updated.user_supplied_info.update({"software": software})
    heading, row, main = part_rows([updated, MAIN], NOW)
    assert heading[4:7] == ("SERVER", "AGENT", "UPDATE")
    assert row[4:7] == ("1.0.0", "0.1.0", "server 2.0.0 rolled back: it crashed")
    assert main[4:7] == ("-", "-", "-")
    assert describe_part(updated, NOW)["software"] == software


def test_part_of_another_cloud_has_no_versions() -> None:
    part = pb.RobotPart(id="p", name="new")
    part.user_supplied_info.update({"software": ["x"], "other": 1})
    assert part_rows([part], NOW)[0] == ("NAME", "ROLE", "STATE", "LAST SEEN", "ADDRESS", "ID")


def test_parts_are_described_without_secrets() -> None:
    described = describe_part(ARM, NOW)
    assert described["last_seen"] == "1970-01-12T13:46:40.000Z"
    assert "hidden" not in json.dumps(described)


def test_locations_name_what_they_are_inside() -> None:
    hall = pb.Location(id="h", name="Hall 1", robot_count=3)
    cell = pb.Location(id="c", name="Cell", parent_location_id="h")
    foreign = pb.Location(id="f", name="Far", parent_location_id="unknown")
    _, *rows = location_rows([(ACME, [hall, cell, foreign])])
    assert [row[1] for row in rows] == ["", "Hall 1", "unknown"]
    assert rows[0] == ("Hall 1", "", "3", "Acme", "h")


def test_name_of_a_machine_means_its_main_part() -> None:
    assert describe_part_choice(machine(), MAIN).names == ("press-main", "press", "m")
    assert describe_part_choice(machine(), ARM).names == ("arm",)


def test_keys_show_their_roles_by_name() -> None:
    key = pb.APIKeyWithAuthorizations(
        api_key=pb.APIKey(id="k", name="anna"),
        authorizations=[
            pb.AuthorizationDetails(
                authorization_id="robot_operator", resource_type="robot", resource_id="m"
            ),
            pb.AuthorizationDetails(
                authorization_id="location_owner", resource_type="location", resource_id="?"
            ),
        ],
    )
    key.api_key.created_on.FromSeconds(int(NOW) - 60)
    _, row = key_rows([key], {"m": "press"}, "other", NOW)
    assert row == ("anna", "operator of machine press; owner of location ?", "1m", "k")
    _, (name, *_) = key_rows([key], {}, "k", NOW)
    assert name == "anna (yours)"
