"""The commands `cogwork fleet fragments` and `cogwork fleet fragment`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, ORG, REVEAL, YES
from cogwork.core.command_line import argument, command, group, option

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

_FRAGMENT = argument("FRAGMENT", "fragment by name or ID")

FRAGMENTS = command(
    "fragments",
    "List the fragments of an organization",
    "cogwork.cli.fleet.config.fragments:fragments",
    ORG,
    JSON,
    epilog=_READ,
)
FRAGMENT = group(
    "fragment",
    "Create, edit and restore configurations that machines share",
    command(
        "create",
        "Create a fragment",
        "cogwork.cli.fleet.config.fragment_edit:create",
        argument("NAME", "name of the fragment, e.g. drive"),
        option("--file", "FILE", "its content, or - for standard input", required=True),
        ORG,
        JSON,
        epilog=f"Machines use it by its ID, in `fragments` of their configurations. {_READ}",
    ),
    command(
        "show",
        "Print a fragment",
        "cogwork.cli.fleet.config.fragments:show",
        _FRAGMENT,
        option("--revision", "N", "an earlier revision, by its number or tag"),
        JSON,
        REVEAL,
        epilog=_READ,
    ),
    command(
        "edit",
        "Edit a fragment",
        "cogwork.cli.fleet.config.fragment_edit:edit",
        _FRAGMENT,
        option("--file", "FILE", "save this file, or - for standard input, without an editor"),
        YES,
        JSON,
        REVEAL,
        epilog=f"Opens $VISUAL or $EDITOR. {_PREVIEW} {_SAVED}",
    ),
    command(
        "history",
        "List the revisions of a fragment",
        "cogwork.cli.fleet.config.fragments:history",
        _FRAGMENT,
        JSON,
        epilog=_READ,
    ),
    command(
        "restore",
        "Save an earlier revision of a fragment again",
        "cogwork.cli.fleet.config.fragment_edit:restore",
        _FRAGMENT,
        argument("REVISION", "number, as `cogwork fleet fragment history` lists it"),
        YES,
        JSON,
        REVEAL,
        epilog=f"{_PREVIEW} {_SAVED}",
    ),
)
