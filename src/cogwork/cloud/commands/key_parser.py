"""The command line of `cogwork-cloud key`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cogwork.cloud.control_plane.cloud_directory import CloudDirectory

AddData = Callable[[argparse.ArgumentParser], None]

_PURPOSES: Final = ("token", "part-token", "authority", "sealing")


def add_key_parser(commands: Any, add_data: AddData) -> None:
    """Add the command. `add_data` adds the option for the directory of the cloud."""
    key = commands.add_parser(
        "key", help="Replace the lost key of an owner, and rotate the keys of the cloud itself"
    )
    actions = key.add_subparsers(title="commands", required=True, metavar="COMMAND")

    create = actions.add_parser("create", help="Create a key for an owner who has lost theirs")
    create.add_argument(
        "--organization",
        default="",
        metavar="NAME",
        help="the name or ID of the organization, if there are several",
    )
    create.add_argument("--name", default="owner", help="the name of the key (default: owner)")
    create.set_defaults(run=_create)

    listing = actions.add_parser("list", help="List the keys of the cloud itself")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)

    rotate = actions.add_parser("rotate", help="Replace a key of the cloud itself")
    rotate.add_argument(
        "purpose",
        choices=_PURPOSES,
        metavar="KEY",
        help="token (logins at the cloud), part-token (logins at machines), authority "
        "(certificates of machines) or sealing (stored secrets)",
    )
    rotate.add_argument(
        "--now",
        action="store_true",
        help="end the present key at once, because it was stolen; otherwise the new key is "
        "announced first, and nothing fails",
    )
    rotate.set_defaults(run=_rotate)

    for each in (create, listing, rotate):
        add_data(each)


# Imported here, because the command modules are slow to import.


def _create(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import key_commands
    from cogwork.core.clock import SystemClock

    return key_commands.create_owner_key(
        cloud_directory(arguments), arguments.organization, arguments.name, SystemClock()
    )


def _list(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import key_commands
    from cogwork.core.clock import SystemClock

    return key_commands.list_keys(cloud_directory(arguments), SystemClock(), as_json=arguments.json)


def _rotate(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import key_commands
    from cogwork.cloud.keys.cloud_key import KeyPurpose
    from cogwork.core.clock import SystemClock

    return key_commands.rotate(
        cloud_directory(arguments),
        KeyPurpose(arguments.purpose),
        SystemClock(),
        at_once=arguments.now,
    )


def cloud_directory(arguments: argparse.Namespace) -> CloudDirectory:
    """Return the directory from the options, with the root key from the environment."""
    from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
    from cogwork.cloud.keys.root_key import ROOT_KEY_VARIABLE

    return CloudDirectory(arguments.data, os.environ.get(ROOT_KEY_VARIABLE, ""))
