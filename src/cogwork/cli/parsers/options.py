"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import os

from cogwork.core.command_line import argument, option, switch
from cogwork.net.address import parse_address, parse_port

ADDRESS_VARIABLE = "COGWORK_ADDRESS"
_DEFAULT_PORT = 8080
_DEFAULT_ADDRESS = f"localhost:{_DEFAULT_PORT}"


def parse_port_argument(text: str) -> int:
    try:
        return parse_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def parse_address_argument(text: str) -> str:
    try:
        return parse_address(text, _DEFAULT_PORT)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


JSON = switch("--json", "print JSON")
JSON_LINES = switch("--json", "print JSON lines")
YES = switch("-y, --yes", "do not ask")
REVEAL = switch("--reveal-secrets", "do not mask secrets", dest="reveal")
FOLLOW = switch("-f, --follow", "wait for new lines")
PART = argument("PART", "part by name or ID; a machine's name means its main part")
ORG = option("--org", "ORG", "organization (default: the only one)")
SERVER_PORT = option(
    "--port",
    "PORT",
    "port to listen on (default: 8080, or a free port)",
    parse=parse_port_argument,
)


def add_address_option(parser: argparse.ArgumentParser) -> None:
    """Add --address. Its default is read from the environment when the parser is created."""
    option(
        "--address",
        "HOST:PORT",
        f"address of the machine (default: ${ADDRESS_VARIABLE}, or {_DEFAULT_ADDRESS})",
        parse=parse_address_argument,
        default=_default_address(),
    )(parser)


def parse_machine_address(given: str | None) -> str:
    """Return the address in --address, or its default. Raise ValueError if it is invalid."""
    return parse_address(given or _default_address(), _DEFAULT_PORT)


def _default_address() -> str:
    return os.environ.get(ADDRESS_VARIABLE) or _DEFAULT_ADDRESS
