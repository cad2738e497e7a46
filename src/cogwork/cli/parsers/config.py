"""The commands of `cogwork config`."""

from __future__ import annotations

from cogwork.cli.parsers.options import JSON, REVEAL, YES
from cogwork.core.command_line import argument, command, group, option, switch

_CONFIG = option(
    "--config",
    "FILE",
    "configuration file of the server (default: machine.json)",
    default="machine.json",
)
_ID = argument("ID", "entry, as `cogwork config history` lists it")

CONFIG = group(
    "config",
    "Check, compare and restore configuration files",
    command(
        "check",
        "Check a configuration file for errors",
        "cogwork.cli.config.check:check",
        argument(
            "FILE",
            "configuration file, or - for standard input (default: machine.json)",
            nargs="?",
            default="machine.json",
        ),
        JSON,
        epilog="Exit status: 0 if the file is valid, 1 if it has errors, 2 if it cannot be read.",
    ),
    command(
        "diff",
        "Show how a running machine would change from OLD to NEW",
        "cogwork.cli.config.check:diff",
        argument("OLD", "current configuration file"),
        argument("NEW", "new configuration file, or - for standard input"),
        JSON,
        epilog="Exit status: 0 if NEW is valid, 1 if it has errors, 2 if a file cannot be read.",
    ),
    command(
        "migrate",
        "Write a copy of a viam-server configuration without what has no effect here",
        "cogwork.cli.config.migrate:migrate_file",
        argument("FILE", "configuration file, or - for standard input; it is not changed"),
        option(
            "-o, --output",
            "FILE",
            "file to write, or - for standard output (default: beside FILE, such as "
            "machine.migrated.json)",
        ),
        YES,
        JSON,
        epilog="The same resources run with the copy. The copy contains the secrets of FILE, and "
        "the report does not. Exit status: 0, 1 if the copy still has errors, 2 if FILE cannot be "
        "read or the copy cannot be written.",
    ),
    command(
        "history",
        "List the configurations that a machine applied",
        "cogwork.cli.config.history:history",
        _CONFIG,
        JSON,
        epilog="Run it on the computer of the machine. Exit status: 0, or 2 if there is no "
        "history.",
    ),
    command(
        "show",
        "Print a configuration of the history",
        "cogwork.cli.config.history:show",
        _ID,
        _CONFIG,
        switch("--json", "print JSON: the entry, with its text"),
        REVEAL,
        epilog="Exit status: 0, or 2 if there is no such entry.",
    ),
    command(
        "restore",
        "Write a configuration of the history to the file again",
        "cogwork.cli.config.history:restore",
        _ID,
        YES,
        _CONFIG,
        REVEAL,
        epilog="Shows the differences and asks before it writes. Exit status: 0 if the file has "
        "the text of the entry, 1 if you decline, 2 if there is no such entry or the file cannot "
        "be written.",
    ),
    command(
        "schema",
        "Print the JSON Schema of the configuration file",
        "cogwork.cli.config.check:schema",
    ),
)
