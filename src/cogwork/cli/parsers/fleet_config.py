"""The commands of `cogwork fleet config`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, PART, REVEAL, YES
from cogwork.core.command_line import argument, command, group, option

_READ = (
    "Exit status: 0, 1 if the cloud refuses, 2 if it cannot be reached or has nothing of that name."
)
_SAVED = (
    "Exit status: 0 if it is saved, 1 if it has errors, you decline, someone else was faster or "
    "the cloud refuses, 2 if the cloud cannot be reached or has nothing of that name."
)

CONFIG = group(
    "config",
    "Edit and restore the configurations of machines",
    command(
        "show",
        "Print the configuration of a machine",
        "cogwork.cli.fleet.config.part_config:show",
        PART,
        option(
            "--revision", "N", "an earlier revision, as `cogwork fleet config history` lists it"
        ),
        JSON,
        REVEAL,
        epilog=_READ,
    ),
    command(
        "edit",
        "Edit the configuration of a machine",
        "cogwork.cli.fleet.config.config_edit:edit",
        PART,
        option("--file", "FILE", "save this file, or - for standard input, without an editor"),
        option(
            "--last-known-update",
            "TIME",
            "save only if nobody has saved since TIME, the last_updated of `cogwork fleet config "
            "show --json`",
        ),
        YES,
        REVEAL,
        epilog="Opens $VISUAL or $EDITOR, checks the text, shows what would change on the machine "
        f"and asks before it saves. {_SAVED}",
    ),
    command(
        "diff",
        "Show how a machine would change with another configuration",
        "cogwork.cli.fleet.config.part_config:diff",
        PART,
        option("--file", "FILE", "compare with a file, or - for standard input"),
        option("--revision", "N", "compare with an earlier revision"),
        JSON,
        REVEAL,
        epilog="Without a file or a revision, shows the last change. Exit status: 0 if the "
        "configuration is valid, 1 if it has errors or the cloud refuses, 2 if the cloud cannot be "
        "reached or has nothing of that name.",
    ),
    command(
        "history",
        "List the revisions of a machine's configuration",
        "cogwork.cli.fleet.config.part_config:history",
        PART,
        JSON,
        epilog=_READ,
    ),
    command(
        "restore",
        "Save an earlier revision of a configuration again",
        "cogwork.cli.fleet.config.part_config:restore",
        PART,
        argument("REVISION", "number, as `cogwork fleet config history` lists it"),
        YES,
        REVEAL,
        epilog="Shows what would change on the machine and asks before it saves. The revision is "
        f"saved exactly as it was, as a new one. {_SAVED}",
    ),
)
