"""The argument parser of `cogwork`: every command, its arguments and the function that runs it."""

from __future__ import annotations

from cogwork import __version__
from cogwork.cli.command_parser import CommandParser
from cogwork.cli.exit_codes import EXIT_CODES
from cogwork.cli.parsers import (
    assistance,
    config,
    credentials,
    fleet,
    model,
    module,
    observation,
    remote_access,
    resource,
)
from cogwork.core.command_line import add_descriptions

_COMMANDS = (
    config.CONFIG,
    observation.STATUS,
    observation.LOGS,
    observation.GRAPH,
    resource.CALL,
    resource.JOB,
    resource.CAMERA,
    remote_access.TUNNEL,
    remote_access.SHELL,
    remote_access.COPY,
    model.DEMO,
    model.MODELS,
    model.MODEL,
    module.MODULE,
    observation.FIND,
    fleet.FLEET,
    credentials.AUTH,
    credentials.CERTS,
    assistance.EXPLAIN,
    assistance.COMPLETION,
)


def build_parser() -> CommandParser:
    parser = CommandParser(
        prog="cogwork",
        description="Configure, check and operate Cogwork machines. cogwork-server runs a machine; "
        "for a first one, run: cogwork demo demo",
        epilog="Exit codes: "
        + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())
        + ".",
    )
    parser.add_argument("--version", action="version", version=f"cogwork {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_command in _COMMANDS:
        add_command(commands)
    add_descriptions(parser)
    return parser
