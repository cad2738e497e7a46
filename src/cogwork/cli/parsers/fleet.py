"""The parser of `cogwork fleet`, except its configurations and fragments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cogwork.cli.parsers.fleet_config import add_fleet_config
from cogwork.cli.parsers.fleet_fragment import add_fleet_fragment, add_fleet_fragments
from cogwork.cli.parsers.options import add_json_option, add_part_argument, add_yes_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers

_EXIT = (
    "Exit status: 0 if the cloud did it, 1 if the cloud refuses{or_you}, 2 if it cannot be reached "
    "or has nothing of that name."
)
_REFUSED = _EXIT.format(or_you="")
_DECLINED = _EXIT.format(or_you=" or you decline")


def add_fleet(commands: Subparsers) -> None:
    fleet = commands.add_parser("fleet", help="Operate the machines of a cloud")
    subcommands = fleet.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_login(subcommands)
    _add_logout(subcommands)
    _add_orgs(subcommands)
    _add_locations(subcommands)
    _add_location(subcommands)
    _add_machines(subcommands)
    _add_machine(subcommands)
    _add_parts(subcommands)
    _add_part(subcommands)
    _add_claim(subcommands)
    _add_restart(subcommands)
    _add_logs(subcommands)
    add_fleet_config(subcommands)
    add_fleet_fragments(subcommands)
    add_fleet_fragment(subcommands)
    _add_keys(subcommands)
    _add_key(subcommands)
    _add_connect(subcommands)


def _add_login(commands: Subparsers) -> None:
    login = commands.add_parser(
        "login",
        help="Log in to a cloud",
        epilog="Asks for what is not given, checks the key at the cloud and stores it for the next "
        "commands. Scripts can set COGWORK_FLEET_ADDRESS, COGWORK_FLEET_KEY_ID and "
        "COGWORK_FLEET_KEY instead. Exit status: 0, or 2 if the cloud cannot be reached or does "
        "not accept the key.",
    )
    login.add_argument("url", metavar="URL", help="the cloud, e.g. https://fleet.example.org")
    login.add_argument("--key-id", metavar="ID", help="ID of the API key")
    login.add_argument(
        "--key-file", metavar="FILE", help="file with the key, or - for standard input"
    )
    login.add_argument(
        "--ca", metavar="FILE", help="certificate of the authority that signed the cloud's"
    )
    add_json_option(login)
    login.set_defaults(run="cogwork.cli.fleet.login:login")


def _add_logout(commands: Subparsers) -> None:
    logout = commands.add_parser(
        "logout",
        help="Forget the key of the cloud",
        epilog="Exit status: 0, or 2 if the key cannot be deleted from this computer.",
    )
    logout.set_defaults(run="cogwork.cli.fleet.login:logout")


def _add_orgs(commands: Subparsers) -> None:
    orgs = commands.add_parser("orgs", help="List your organizations", epilog=_REFUSED)
    add_json_option(orgs)
    orgs.set_defaults(run="cogwork.cli.fleet.listing:orgs")


def _add_locations(commands: Subparsers) -> None:
    locations = commands.add_parser("locations", help="List your locations", epilog=_REFUSED)
    add_json_option(locations)
    locations.set_defaults(run="cogwork.cli.fleet.listing:locations")


def _add_location(commands: Subparsers) -> None:
    location = commands.add_parser("location", help="Create locations")
    subcommands = location.add_subparsers(title="commands", required=True, metavar="COMMAND")
    create = subcommands.add_parser("create", help="Create a location", epilog=_REFUSED)
    create.add_argument("name", metavar="NAME", help="name of the location, e.g. 'Hall 1'")
    _add_org_option(create)
    add_json_option(create)
    create.set_defaults(run="cogwork.cli.fleet.machines:create_location")


def _add_machines(commands: Subparsers) -> None:
    machines = commands.add_parser("machines", help="List your machines", epilog=_REFUSED)
    machines.add_argument("--location", metavar="LOCATION", help="show only those of a location")
    add_json_option(machines)
    machines.set_defaults(run="cogwork.cli.fleet.listing:machines")


def _add_machine(commands: Subparsers) -> None:
    machine = commands.add_parser("machine", help="Create, rename and delete machines")
    subcommands = machine.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_machine_create(subcommands)
    _add_machine_rename(subcommands)
    _add_machine_delete(subcommands)


def _add_machine_create(commands: Subparsers) -> None:
    create = commands.add_parser(
        "create",
        help="Create a machine and its configuration file",
        epilog="Prints the file with which the machine joins the cloud, or writes it so that only "
        f"you can read it. {_REFUSED}",
    )
    create.add_argument("name", metavar="NAME", help="name of the machine, e.g. press")
    create.add_argument(
        "--location", metavar="LOCATION", help="its location (default: the only one)"
    )
    _add_output_option(create)
    add_json_option(create)
    create.set_defaults(run="cogwork.cli.fleet.machines:create")


def _add_machine_rename(commands: Subparsers) -> None:
    rename = commands.add_parser("rename", help="Rename a machine", epilog=_REFUSED)
    _add_machine_argument(rename)
    rename.add_argument("name", metavar="NAME", help="its new name")
    rename.set_defaults(run="cogwork.cli.fleet.machines:rename")


def _add_machine_delete(commands: Subparsers) -> None:
    delete = commands.add_parser(
        "delete",
        help="Delete a machine",
        epilog=f"Asks first. The logs of the machine stay until they are 30 days old. {_DECLINED}",
    )
    _add_machine_argument(delete)
    add_yes_option(delete)
    delete.set_defaults(run="cogwork.cli.fleet.machines:delete")


def _add_parts(commands: Subparsers) -> None:
    parts = commands.add_parser("parts", help="List the parts of a machine", epilog=_REFUSED)
    _add_machine_argument(parts)
    add_json_option(parts)
    parts.set_defaults(run="cogwork.cli.fleet.listing:parts")


def _add_part(commands: Subparsers) -> None:
    part = commands.add_parser("part", help="Replace the secrets of parts")
    subcommands = part.add_subparsers(title="commands", required=True, metavar="COMMAND")
    rotate = subcommands.add_parser(
        "rotate",
        help="Replace the secret of a part, and cut off who has the present one",
        epilog="Asks first. Prints the file with which the machine joins the cloud again, or "
        f"writes it so that only you can read it. {_DECLINED}",
    )
    add_part_argument(rotate)
    _add_output_option(rotate)
    add_yes_option(rotate)
    add_json_option(rotate)
    rotate.set_defaults(run="cogwork.cli.fleet.part_secret:rotate")


def _add_claim(commands: Subparsers) -> None:
    claim = commands.add_parser(
        "claim", help="Create a code with which a machine joins", epilog=_REFUSED
    )
    add_part_argument(claim)
    add_json_option(claim)
    claim.set_defaults(run="cogwork.cli.fleet.claim:claim")


def _add_restart(commands: Subparsers) -> None:
    restart = commands.add_parser(
        "restart", help="Restart the server of a machine", epilog=_REFUSED
    )
    add_part_argument(restart)
    restart.set_defaults(run="cogwork.cli.fleet.restart:restart")


def _add_logs(commands: Subparsers) -> None:
    logs = commands.add_parser("logs", help="Show the log of a machine", epilog=_REFUSED)
    add_part_argument(logs)
    logs.add_argument("-f", "--follow", action="store_true", help="wait for new lines")
    logs.add_argument(
        "-n",
        "--lines",
        metavar="N",
        type=_parse_count,
        default=100,
        help="how many lines to show without --since (default: 100)",
    )
    logs.add_argument("--level", choices=("debug", "info", "warn", "error"), help="minimum level")
    logs.add_argument("--search", metavar="TEXT", help="show only lines that contain TEXT")
    logs.add_argument(
        "--since", metavar="WHEN", help="show all lines since WHEN, e.g. 10m or 2026-11-15T14:02"
    )
    logs.add_argument("--json", action="store_true", help="print JSON lines")
    logs.set_defaults(run="cogwork.cli.fleet.logs:logs")


def _add_keys(commands: Subparsers) -> None:
    keys = commands.add_parser("keys", help="List the API keys of an organization", epilog=_REFUSED)
    _add_org_option(keys)
    add_json_option(keys)
    keys.set_defaults(run="cogwork.cli.fleet.keys:keys")


def _add_key(commands: Subparsers) -> None:
    key = commands.add_parser("key", help="Create, replace and delete API keys")
    subcommands = key.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_key_create(subcommands)
    _add_key_rotate(subcommands)
    _add_key_delete(subcommands)


def _add_key_create(commands: Subparsers) -> None:
    create = commands.add_parser(
        "create",
        help="Create an API key",
        epilog=f"The key is printed once. {_REFUSED}",
    )
    create.add_argument("name", metavar="NAME", help="name of the key, e.g. its holder")
    create.add_argument(
        "--role",
        choices=("operator", "owner"),
        default="operator",
        help="what its holder may do (default: operator, who cannot change configurations)",
    )
    create.add_argument("--machine", metavar="MACHINE", help="give the role on one machine")
    create.add_argument("--location", metavar="LOCATION", help="give the role on one location")
    create.add_argument(
        "--org", metavar="ORG", help="give the role on an organization (default: the only one)"
    )
    add_json_option(create)
    create.set_defaults(run="cogwork.cli.fleet.keys:create")


def _add_key_rotate(commands: Subparsers) -> None:
    rotate = commands.add_parser(
        "rotate",
        help="Replace the secret of an API key",
        epilog=f"Asks first. The new key is printed once. {_DECLINED}",
    )
    _add_key_argument(rotate)
    add_yes_option(rotate)
    add_json_option(rotate)
    rotate.set_defaults(run="cogwork.cli.fleet.keys:rotate")


def _add_key_delete(commands: Subparsers) -> None:
    delete = commands.add_parser(
        "delete", help="Delete an API key", epilog=f"Asks first. {_DECLINED}"
    )
    _add_key_argument(delete)
    add_yes_option(delete)
    delete.set_defaults(run="cogwork.cli.fleet.keys:delete")


def _add_connect(commands: Subparsers) -> None:
    connect = commands.add_parser(
        "connect",
        help="Show how to connect to a machine from Python",
        epilog="Exit status: 0, 1 if --check cannot connect to the machine, 2 if the cloud cannot "
        "be reached or has nothing of that name.",
    )
    add_part_argument(connect)
    connect.add_argument(
        "--check", action="store_true", help="connect, and list the resources of the machine"
    )
    add_json_option(connect)
    connect.set_defaults(run="cogwork.cli.fleet.connect:connect")


def _add_machine_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("machine", metavar="MACHINE", help="machine by name or ID")


def _add_key_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="key by name or ID")


def _add_output_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the file instead of printing it"
    )


def _add_org_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--org", metavar="ORG", help="organization (default: the only one)")


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of lines from 1 to 1000000")
    return int(text)
