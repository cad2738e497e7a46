"""The parser of `cogwork config`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_json_option, add_reveal_option, add_yes_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_config(commands: Subparsers) -> None:
    config = commands.add_parser("config", help="Check, compare and restore configuration files")
    subcommands = config.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_config_check(subcommands)
    _add_config_diff(subcommands)
    _add_config_history(subcommands)
    _add_config_show(subcommands)
    _add_config_restore(subcommands)
    _add_config_schema(subcommands)


def _add_config_check(commands: Subparsers) -> None:
    check = commands.add_parser(
        "check",
        help="Check a configuration file for errors",
        epilog="Exit status: 0 if the file is valid, 1 if it has errors, 2 if it cannot be read.",
    )
    check.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="machine.json",
        help="configuration file, or - for standard input (default: machine.json)",
    )
    add_json_option(check)
    check.set_defaults(run="cogwork.cli.config:check")


def _add_config_diff(commands: Subparsers) -> None:
    diff = commands.add_parser(
        "diff",
        help="Show how a running machine would change from OLD to NEW",
        epilog="Exit status: 0 if NEW is valid, 1 if it has errors, 2 if a file cannot be read.",
    )
    diff.add_argument("old", metavar="OLD", help="current configuration file")
    diff.add_argument("new", metavar="NEW", help="new configuration file, or - for standard input")
    add_json_option(diff)
    diff.set_defaults(run="cogwork.cli.config:diff")


def _add_config_history(commands: Subparsers) -> None:
    history = commands.add_parser(
        "history",
        help="List the configurations that a machine applied",
        epilog="Run it on the computer of the machine. Exit status: 0, or 2 if there is no "
        "history.",
    )
    _add_config_option(history)
    add_json_option(history)
    history.set_defaults(run="cogwork.cli.config_history:history")


def _add_config_show(commands: Subparsers) -> None:
    show = commands.add_parser(
        "show",
        help="Print a configuration of the history",
        epilog="Exit status: 0, or 2 if there is no such entry.",
    )
    show.add_argument("id", metavar="ID", help="entry, as `cogwork config history` lists it")
    _add_config_option(show)
    add_reveal_option(show)
    show.set_defaults(run="cogwork.cli.config_history:show")


def _add_config_restore(commands: Subparsers) -> None:
    restore = commands.add_parser(
        "restore",
        help="Write a configuration of the history to the file again",
        epilog="Shows the differences and asks before it writes. Exit status: 0 if the file has "
        "the text of the entry, 1 if you decline, 2 if there is no such entry or the file cannot "
        "be written.",
    )
    restore.add_argument("id", metavar="ID", help="entry, as `cogwork config history` lists it")
    add_yes_option(restore)
    _add_config_option(restore)
    add_reveal_option(restore)
    restore.set_defaults(run="cogwork.cli.config_history:restore")


def _add_config_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        metavar="FILE",
        default="machine.json",
        help="configuration file of the server (default: machine.json)",
    )


def _add_config_schema(commands: Subparsers) -> None:
    schema = commands.add_parser("schema", help="Print the JSON Schema of the configuration file")
    schema.set_defaults(run="cogwork.cli.config:schema")
