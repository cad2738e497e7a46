"""`cogwork-cloud`: create and serve a fleet cloud, back it up, and update its machines."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cogwork import __version__
from cogwork.cloud.commands.key_parser import add_key_parser, cloud_directory
from cogwork.cloud.commands.release_parser import add_release_parser
from cogwork.cloud.commands.serve_parser import add_serve_parser
from cogwork.core.command_line import add_descriptions
from cogwork.core.cut_output import run_until_cut_off
from cogwork.core.errors import CogworkError
from cogwork.core.paths import cogwork_home

EXIT_OK = 0
EXIT_FAILURE = 1


def main(argv: Sequence[str] | None = None) -> int:
    return run_until_cut_off(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CogworkError as error:
        print(f"cogwork-cloud: {error}", file=sys.stderr)
        return EXIT_FAILURE


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "cogwork-cloud", description="Host a fleet of machines: their configurations and logs."
    )
    parser.add_argument("--version", action="version", version=f"cogwork-cloud {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_init_parser(commands)
    add_serve_parser(commands, _add_data_option)
    _add_record_parsers(commands)
    add_key_parser(commands, _add_data_option)
    add_release_parser(commands, _add_data_option)
    add_descriptions(parser)
    return parser


def _add_init_parser(commands: Any) -> None:
    init = commands.add_parser("init", help="Create a cloud, and print the key of its first owner")
    init.add_argument(
        "--domain",
        default="localhost",
        help="the names of machines end with it (default: localhost)",
    )
    init.add_argument(
        "--organization", default="Main", metavar="NAME", help="the first organization"
    )
    init.set_defaults(run=_init)
    _add_data_option(init)


def _add_record_parsers(commands: Any) -> None:
    """Add the commands that read or replace the records."""
    usage = commands.add_parser(
        "usage", help="Show the stored logs of each machine, and how many lines were lost"
    )
    usage.add_argument("--json", action="store_true", help="print JSON, with every day")
    usage.set_defaults(run=_usage)
    backup = commands.add_parser(
        "backup", help="Copy the records to a file, also while the cloud is served"
    )
    backup.add_argument("file", type=Path, metavar="FILE", help="where to write the copy")
    backup.set_defaults(run=_backup)
    restore = commands.add_parser("restore", help="Replace the records by a copy")
    restore.add_argument(
        "file",
        nargs="?",
        type=Path,
        metavar="FILE",
        help="a copy of `cogwork-cloud backup`; without it, the records were restored by other "
        "means, such as a snapshot of the disk",
    )
    restore.set_defaults(run=_restore)
    repair = commands.add_parser("repair", help="Repair a cloud whose root key is lost")
    repair.add_argument(
        "--new-root-key",
        action="store_true",
        required=True,
        help="make a new root key, and new keys of the cloud",
    )
    repair.set_defaults(run=_repair)
    for each in (usage, backup, restore, repair):
        _add_data_option(each)


def _add_data_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        type=Path,
        default=cogwork_home(os.environ) / "cloud",
        metavar="DIRECTORY",
        help="where the cloud is kept (default: cloud in $COGWORK_HOME, or ~/.cogwork/cloud)",
    )


def _init(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands.create_cloud import create_cloud
    from cogwork.cloud.control_plane.cloud_directory import check_domain
    from cogwork.core.clock import SystemClock

    directory, domain = cloud_directory(arguments), check_domain(arguments.domain)
    new = create_cloud(directory, domain, arguments.organization, SystemClock())
    print(f"""Created a cloud in {directory.path}.

The key of its first owner, which is shown only once:
  key ID: {new.key_id}
  key:    {new.key}

Serve it:
  cogwork-cloud serve --data {directory.path}""")
    return EXIT_OK


def _usage(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands.log_usage import format_table, report_usage, select_parts
    from cogwork.cloud.fleet.log_losses import list_losses
    from cogwork.cloud.storage.log_store import LogUsage
    from cogwork.cloud.storage.sqlite_log_store import SqliteLogStore
    from cogwork.cloud.storage.sqlite_records import read_records
    from cogwork.core.clock import SystemClock

    directory, now = cloud_directory(arguments), int(SystemClock().time() * 1e6)
    directory.require_current()

    async def measure() -> Sequence[LogUsage]:
        logs = SqliteLogStore(directory.logs)
        try:
            return await logs.measure(now)
        finally:
            await logs.aclose()

    # Measure before reading the parts, so that no part with measured lines is missing.
    stored = asyncio.run(measure())
    losses, parts = read_records(directory.records, lambda tx: (list_losses(tx), select_parts(tx)))
    found = report_usage(stored, losses, parts, now)
    if arguments.json:
        print(json.dumps([each.as_json() for each in found], indent=2))
    else:
        print(format_table(found))
    return EXIT_OK


def _backup(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands.backup import back_up

    directory = cloud_directory(arguments)
    back_up(directory, arguments.file)
    print(f"copied the records to {arguments.file}; keep the root key elsewhere")
    return EXIT_OK


def _restore(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands.backup import restore
    from cogwork.core.clock import SystemClock

    replaced = restore(cloud_directory(arguments), arguments.file, SystemClock())
    if replaced is not None:
        print(f"restored the records; the former ones are {replaced}")
    print(
        "For 24 hours, machines whose login fails are asked to try again instead of being refused."
    )
    print(
        "Keys and roles that were taken away after the backup are valid again: delete them again."
    )
    return EXIT_OK


def _repair(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands.backup import renew_root_key
    from cogwork.core.clock import SystemClock

    directory = cloud_directory(arguments)
    renew_root_key(directory, SystemClock())
    print(
        "Made a new root key and new keys. Keys and secrets work as before, but cannot be shown "
        "again. Tokens end, so restart programs that use the cloud. Give clients the new "
        f"{directory.authorities}."
    )
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
