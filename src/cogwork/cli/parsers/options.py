"""Options that several commands share."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from cogwork.cli.command_parser import CommandParser
from cogwork.core.address import parse_address, parse_port

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[CommandParser]

ADDRESS_VARIABLE = "COGWORK_ADDRESS"
_DEFAULT_PORT = 8080


def add_address_option(parser: argparse.ArgumentParser) -> None:
    default = f"localhost:{_DEFAULT_PORT}"
    parser.add_argument(
        "--address",
        metavar="HOST:PORT",
        type=_parse_address,
        default=os.environ.get(ADDRESS_VARIABLE) or default,
        help=f"address of the machine (default: ${ADDRESS_VARIABLE}, or {default})",
    )


def add_json_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def add_reveal_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reveal-secrets", dest="reveal", action="store_true", help="do not mask secrets"
    )


def add_part_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "part", metavar="PART", help="part by name or ID; a machine's name means its main part"
    )


def parse_port_argument(text: str) -> int:
    try:
        return parse_port(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parse_address(text: str) -> str:
    try:
        return parse_address(text, _DEFAULT_PORT)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
