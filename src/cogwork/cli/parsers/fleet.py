"""The commands of `cogwork fleet`, except the commands for configurations and fragments."""

from __future__ import annotations

import argparse

from cogwork.cli.parsers.fleet_config import CONFIG
from cogwork.cli.parsers.fleet_fragment import FRAGMENT, FRAGMENTS
from cogwork.cli.parsers.options import FOLLOW, JSON, JSON_LINES, ORG, PART, YES
from cogwork.core.command_line import argument, command, group, option, switch


def _parse_count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of lines from 1 to 1000000")
    return int(text)


_EXIT = (
    "Exit status: 0 if the cloud did it, 1 if the cloud refuses{or_you}, 2 if it cannot be reached "
    "or has nothing of that name."
)
_REFUSED = _EXIT.format(or_you="")
_DECLINED = _EXIT.format(or_you=" or you decline")

_MACHINE = argument("MACHINE", "machine by name or ID")
_KEY = argument("KEY", "key by name or ID")
_OUTPUT = option("-o, --output", "FILE", "write the file instead of printing it")

FLEET = group(
    "fleet",
    "Operate the machines of a cloud",
    command(
        "login",
        "Log in to a cloud",
        "cogwork.cli.fleet.login:login",
        argument("URL", "the cloud, e.g. https://fleet.example.org"),
        option("--key-id", "ID", "ID of the API key"),
        option("--key-file", "FILE", "file with the key, or - for standard input"),
        option("--ca", "FILE", "certificate of the authority that signed the cloud's certificate"),
        JSON,
        epilog="Asks for what is not given, checks the key at the cloud and stores it for the "
        "next commands. Scripts can set COGWORK_FLEET_ADDRESS, COGWORK_FLEET_KEY_ID and "
        "COGWORK_FLEET_KEY instead. Exit status: 0, or 2 if the cloud cannot be reached or does "
        "not accept the key.",
    ),
    command(
        "logout",
        "Forget the key of the cloud",
        "cogwork.cli.fleet.login:logout",
        epilog="Exit status: 0, or 2 if the key cannot be deleted from this computer.",
    ),
    command(
        "orgs", "List your organizations", "cogwork.cli.fleet.listing:orgs", JSON, epilog=_REFUSED
    ),
    command(
        "locations",
        "List your locations",
        "cogwork.cli.fleet.listing:locations",
        JSON,
        epilog=_REFUSED,
    ),
    group(
        "location",
        "Create locations",
        command(
            "create",
            "Create a location",
            "cogwork.cli.fleet.machines:create_location",
            argument("NAME", "name of the location, e.g. 'Hall 1'"),
            ORG,
            JSON,
            epilog=_REFUSED,
        ),
    ),
    command(
        "machines",
        "List your machines",
        "cogwork.cli.fleet.listing:machines",
        option("--location", "LOCATION", "show only the machines of a location"),
        JSON,
        epilog=_REFUSED,
    ),
    group(
        "machine",
        "Create, rename and delete machines",
        command(
            "create",
            "Create a machine and its configuration file",
            "cogwork.cli.fleet.machines:create",
            argument("NAME", "name of the machine, e.g. press"),
            option("--location", "LOCATION", "its location (default: the only one)"),
            _OUTPUT,
            JSON,
            epilog="Prints the file with which the machine joins the cloud, or writes it so that "
            f"only you can read it. {_REFUSED}",
        ),
        command(
            "rename",
            "Rename a machine",
            "cogwork.cli.fleet.machines:rename",
            _MACHINE,
            argument("NAME", "its new name"),
            epilog=_REFUSED,
        ),
        command(
            "delete",
            "Delete a machine",
            "cogwork.cli.fleet.machines:delete",
            _MACHINE,
            YES,
            epilog="Asks first. The logs of the machine stay until they are 30 days old. "
            f"{_DECLINED}",
        ),
    ),
    command(
        "parts",
        "List the parts of a machine",
        "cogwork.cli.fleet.listing:parts",
        _MACHINE,
        JSON,
        epilog=_REFUSED,
    ),
    group(
        "part",
        "Replace the secrets of parts",
        command(
            "rotate",
            "Replace the secret of a part; the present one stops working",
            "cogwork.cli.fleet.part_secret:rotate",
            PART,
            _OUTPUT,
            YES,
            JSON,
            epilog="Asks first. Prints the file with which the machine joins the cloud again, or "
            f"writes it so that only you can read it. {_DECLINED}",
        ),
    ),
    command(
        "claim",
        "Create a code with which a machine joins",
        "cogwork.cli.fleet.claim:claim",
        PART,
        JSON,
        epilog=_REFUSED,
    ),
    command(
        "restart",
        "Restart the server of a machine",
        "cogwork.cli.fleet.restart:restart",
        PART,
        epilog=_REFUSED,
    ),
    command(
        "logs",
        "Show the log of a machine",
        "cogwork.cli.fleet.logs:logs",
        PART,
        FOLLOW,
        option(
            "-n, --lines",
            "N",
            "how many lines to show without --since (default: 100)",
            parse=_parse_count,
            default=100,
        ),
        option("--level", None, "minimum level", choices=("debug", "info", "warn", "error")),
        option("--search", "TEXT", "show only lines that contain TEXT"),
        option("--since", "WHEN", "show all lines since WHEN, e.g. 10m or 2026-11-15T14:02"),
        JSON_LINES,
        epilog=_REFUSED,
    ),
    CONFIG,
    FRAGMENTS,
    FRAGMENT,
    command(
        "keys",
        "List the API keys of an organization",
        "cogwork.cli.fleet.keys:keys",
        ORG,
        JSON,
        epilog=_REFUSED,
    ),
    group(
        "key",
        "Create, replace and delete API keys",
        command(
            "create",
            "Create an API key",
            "cogwork.cli.fleet.keys:create",
            argument("NAME", "name of the key, e.g. its holder"),
            option(
                "--role",
                None,
                "what its holder may do (default: operator, who cannot change configurations)",
                choices=("operator", "owner"),
                default="operator",
            ),
            option("--machine", "MACHINE", "give the role on one machine"),
            option("--location", "LOCATION", "give the role on one location"),
            option("--org", "ORG", "give the role on an organization (default: the only one)"),
            JSON,
            epilog=f"The key is printed once. {_REFUSED}",
        ),
        command(
            "rotate",
            "Replace the secret of an API key",
            "cogwork.cli.fleet.keys:rotate",
            _KEY,
            YES,
            JSON,
            epilog=f"Asks first. The new key is printed once. {_DECLINED}",
        ),
        command(
            "delete",
            "Delete an API key",
            "cogwork.cli.fleet.keys:delete",
            _KEY,
            YES,
            epilog=f"Asks first. {_DECLINED}",
        ),
    ),
    command(
        "connect",
        "Show how to connect to a machine from Python",
        "cogwork.cli.fleet.connect:connect",
        PART,
        switch("--check", "connect, and list the resources of the machine"),
        JSON,
        epilog="Exit status: 0, 1 if --check cannot connect to the machine, 2 if the cloud cannot "
        "be reached or has nothing of that name.",
    ),
)
