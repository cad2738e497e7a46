"""The parser of `cogwork fleet fragment`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from cogwork.cli.parsers.options import add_json_option, add_reveal_option, add_yes_option

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers

_READ = (
    "Exit status: 0, 1 if the cloud refuses, 2 if it cannot be reached or has nothing of that name."
)
_SAVED = (
    "Exit status: 0 if it is saved, 1 if it would be a mistake on a machine, you decline, someone "
    "else was faster or the cloud refuses, 2 if the cloud cannot be reached or has nothing of that "
    "name."
)
_PREVIEW = (
    "Shows how many machines use the fragment and what would change on them, and asks before it "
    "saves. With --json, it prints that, and saves only with --yes."
)


def add_fleet_fragments(commands: Subparsers) -> None:
    fragments = commands.add_parser(
        "fragments", help="List the fragments of an organization", epilog=_READ
    )
    fragments.add_argument("--org", metavar="ORG", help="organization (default: the only one)")
    add_json_option(fragments)
    fragments.set_defaults(run="cogwork.cli.fleet.fragments:fragments")


def add_fleet_fragment(commands: Subparsers) -> None:
    fragment = commands.add_parser(
        "fragment", help="Create, edit and restore configurations that machines share"
    )
    subcommands = fragment.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_create(subcommands)
    _add_show(subcommands)
    _add_edit(subcommands)
    _add_history(subcommands)
    _add_restore(subcommands)


def _add_create(commands: Subparsers) -> None:
    create = commands.add_parser(
        "create",
        help="Create a fragment",
        epilog=f"Machines use it by its ID, in `fragments` of their configurations. {_READ}",
    )
    create.add_argument("name", metavar="NAME", help="name of the fragment, e.g. drive")
    create.add_argument(
        "--file", metavar="FILE", required=True, help="its content, or - for standard input"
    )
    create.add_argument("--org", metavar="ORG", help="organization (default: the only one)")
    add_json_option(create)
    create.set_defaults(run="cogwork.cli.fleet.fragment_edit:create")


def _add_show(commands: Subparsers) -> None:
    show = commands.add_parser("show", help="Print a fragment", epilog=_READ)
    _add_fragment_argument(show)
    show.add_argument("--revision", metavar="N", help="an earlier one, by its number or tag")
    add_json_option(show)
    add_reveal_option(show)
    show.set_defaults(run="cogwork.cli.fleet.fragments:show")


def _add_edit(commands: Subparsers) -> None:
    edit = commands.add_parser(
        "edit", help="Edit a fragment", epilog=f"Opens $VISUAL or $EDITOR. {_PREVIEW} {_SAVED}"
    )
    _add_fragment_argument(edit)
    edit.add_argument(
        "--file", metavar="FILE", help="save this file, or - for standard input, without an editor"
    )
    add_yes_option(edit)
    add_json_option(edit)
    add_reveal_option(edit)
    edit.set_defaults(run="cogwork.cli.fleet.fragment_edit:edit")


def _add_history(commands: Subparsers) -> None:
    history = commands.add_parser("history", help="List the revisions of a fragment", epilog=_READ)
    _add_fragment_argument(history)
    add_json_option(history)
    history.set_defaults(run="cogwork.cli.fleet.fragments:history")


def _add_restore(commands: Subparsers) -> None:
    restore = commands.add_parser(
        "restore",
        help="Save an earlier revision of a fragment again",
        epilog=f"{_PREVIEW} {_SAVED}",
    )
    _add_fragment_argument(restore)
    restore.add_argument(
        "revision", metavar="REVISION", help="number, as `cogwork fleet fragment history` lists it"
    )
    add_yes_option(restore)
    add_json_option(restore)
    add_reveal_option(restore)
    restore.set_defaults(run="cogwork.cli.fleet.fragment_edit:restore")


def _add_fragment_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("fragment", metavar="FRAGMENT", help="fragment by name or ID")
