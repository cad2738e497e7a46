"""The parser of `cogwork fleet config`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import (
    add_json_option,
    add_part_argument,
    add_reveal_option,
    add_yes_option,
)

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers

_READ = (
    "Exit status: 0, 1 if the cloud refuses, 2 if it cannot be reached or has nothing of that name."
)
_SAVED = (
    "Exit status: 0 if it is saved, 1 if it has errors, you decline, someone else was faster or "
    "the cloud refuses, 2 if the cloud cannot be reached or has nothing of that name."
)


def add_fleet_config(commands: Subparsers) -> None:
    config = commands.add_parser("config", help="Edit and restore the configurations of machines")
    subcommands = config.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_show(subcommands)
    _add_edit(subcommands)
    _add_diff(subcommands)
    _add_history(subcommands)
    _add_restore(subcommands)


def _add_show(commands: Subparsers) -> None:
    show = commands.add_parser("show", help="Print the configuration of a machine", epilog=_READ)
    add_part_argument(show)
    show.add_argument(
        "--revision", metavar="N", help="an earlier one, as `cogwork fleet config history` lists it"
    )
    add_json_option(show)
    add_reveal_option(show)
    show.set_defaults(run="cogwork.cli.fleet.part_config:show")


def _add_edit(commands: Subparsers) -> None:
    edit = commands.add_parser(
        "edit",
        help="Edit the configuration of a machine",
        epilog="Opens $VISUAL or $EDITOR, checks the text, shows what would change on the machine "
        f"and asks before it saves. {_SAVED}",
    )
    add_part_argument(edit)
    edit.add_argument(
        "--file", metavar="FILE", help="save this file, or - for standard input, without an editor"
    )
    edit.add_argument(
        "--last-known-update",
        metavar="TIME",
        help="save only if nobody has saved since TIME, the last_updated of `cogwork fleet config "
        "show --json`",
    )
    add_yes_option(edit)
    add_reveal_option(edit)
    edit.set_defaults(run="cogwork.cli.fleet.config_edit:edit")


def _add_diff(commands: Subparsers) -> None:
    diff = commands.add_parser(
        "diff",
        help="Show how a machine would change with another configuration",
        epilog="Without a file or a revision, shows the last change. Exit status: 0 if the "
        "configuration is valid, 1 if it has errors or the cloud refuses, 2 if the cloud cannot be "
        "reached or has nothing of that name.",
    )
    add_part_argument(diff)
    other = diff.add_mutually_exclusive_group()
    other.add_argument(
        "--file", metavar="FILE", help="compare with a file, or - for standard input"
    )
    other.add_argument("--revision", metavar="N", help="compare with an earlier revision")
    add_json_option(diff)
    add_reveal_option(diff)
    diff.set_defaults(run="cogwork.cli.fleet.part_config:diff")


def _add_history(commands: Subparsers) -> None:
    history = commands.add_parser(
        "history", help="List the revisions of a machine's configuration", epilog=_READ
    )
    add_part_argument(history)
    add_json_option(history)
    history.set_defaults(run="cogwork.cli.fleet.part_config:history")


def _add_restore(commands: Subparsers) -> None:
    restore = commands.add_parser(
        "restore",
        help="Save an earlier revision of a configuration again",
        epilog="Shows what would change on the machine and asks before it saves. The revision is "
        f"saved exactly as it was, as a new one. {_SAVED}",
    )
    add_part_argument(restore)
    restore.add_argument(
        "revision", metavar="REVISION", help="number, as `cogwork fleet config history` lists it"
    )
    add_yes_option(restore)
    add_reveal_option(restore)
    restore.set_defaults(run="cogwork.cli.fleet.part_config:restore")
