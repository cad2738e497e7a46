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


def build_parser() -> CommandParser:
    parser = CommandParser(
        prog="cogwork",
        description="Configure, check and operate Cogwork machines.",
        epilog="Exit codes: "
        + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items())
        + ".",
    )
    parser.add_argument("--version", action="version", version=f"cogwork {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        config.add_config,
        observation.add_status,
        observation.add_logs,
        observation.add_graph,
        resource.add_call,
        resource.add_camera,
        remote_access.add_tunnel,
        remote_access.add_shell,
        remote_access.add_copy,
        model.add_demo,
        model.add_model,
        module.add_module,
        observation.add_find,
        fleet.add_fleet,
        credentials.add_auth,
        credentials.add_certs,
        assistance.add_explain,
        assistance.add_completion,
    ):
        add(commands)
    return parser
