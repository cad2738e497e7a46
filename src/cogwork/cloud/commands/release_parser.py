"""The command line of `cogwork-cloud release`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cogwork.core.versions.product import Product

_MAX_HOURS: Final = 24 * 365

AddData = Callable[[argparse.ArgumentParser], None]


def add_release_parser(commands: Any, add_data: AddData) -> None:
    """Add the command. `add_data` adds the option for the directory of the cloud."""
    release = commands.add_parser("release", help="Add releases, and roll them out to machines")
    actions = release.add_subparsers(title="commands", required=True, metavar="COMMAND")

    add = actions.add_parser("add", help="Add releases from their archives")
    add.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a signed .tar archive")
    add.set_defaults(run=_add)

    listing = actions.add_parser("list", help="List the releases")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)

    installer = actions.add_parser(
        "installer", help="Make a script that installs the agent and the server on a machine"
    )
    installer.add_argument(
        "url", type=_parse_url, metavar="URL", help="where machines reach this cloud"
    )
    installer.add_argument(
        "--key",
        type=Path,
        required=True,
        metavar="FILE",
        help="the public key of those who sign the releases, an Ed25519 PEM",
    )
    installer.add_argument(
        "--output",
        type=Path,
        default=Path("install-cogwork.py"),
        metavar="FILE",
        help="where to write it (default: install-cogwork.py)",
    )
    installer.set_defaults(run=_make_installer)

    rollout = actions.add_parser("rollout", help="Roll out a version to the machines of a channel")
    _add_channel(rollout)
    rollout.add_argument("version", metavar="VERSION", help="a version that was added")
    rollout.add_argument(
        "--stages",
        type=_parse_stages,
        default=(1, 10, 50, 100),
        metavar="PERCENT,...",
        help="how many of the machines get it in each stage (default: 1,10,50,100)",
    )
    rollout.add_argument(
        "--hours",
        type=_parse_hours,
        default=24.0,
        metavar="HOURS",
        help="how long each stage lasts at least (default: 24)",
    )
    rollout.add_argument(
        "--max-failures",
        type=int,
        default=5,
        metavar="PERCENT",
        help="pause if more of the machines that report have failed (default: 5)",
    )
    rollout.add_argument(
        "--rollback",
        action="store_true",
        help="take machines back to it that have a newer version",
    )
    rollout.set_defaults(run=_rollout)

    pause = actions.add_parser("pause", help="Stop offering the version to more machines")
    _add_channel(pause)
    pause.set_defaults(run=_pause)
    resume = actions.add_parser("resume", help="Go on with a paused rollout")
    _add_channel(resume)
    resume.set_defaults(run=_resume)

    status = actions.add_parser("status", help="Show how the rollouts go, and what failed")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=_status)

    for each in (add, listing, installer, rollout, pause, resume, status):
        add_data(each)


def _add_channel(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("channel", metavar="CHANNEL", help="such as stable or dev")
    parser.add_argument(
        "product", metavar="PRODUCT", choices=[*map(str, Product)], help="server or agent"
    )


def _parse_url(text: str) -> str:
    address = urlsplit(text)
    if address.scheme not in ("http", "https") or not address.hostname:
        raise argparse.ArgumentTypeError(f'"{text}" is not an address like https://fleet.example')
    return text


def _parse_stages(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a list such as 1,10,50,100') from None


def _parse_hours(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= _MAX_HOURS:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of hours from 0 to {_MAX_HOURS}'
        )
    return found


# Imported here, because the command modules are slow to import.


def _add(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.add(arguments.data, arguments.files)


def _list(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.show_releases(arguments.data, as_json=arguments.json)


def _make_installer(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.make_installer(
        arguments.data, arguments.url, arguments.key, arguments.output
    )


def _rollout(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands
    from cogwork.cloud.updates.rollouts import RolloutPlan

    plan = RolloutPlan(
        arguments.stages,
        int(arguments.hours * 3_600_000_000),
        arguments.max_failures,
        arguments.rollback,
    )
    return release_commands.start(
        arguments.data, arguments.channel, Product(arguments.product), arguments.version, plan
    )


def _pause(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.pause(arguments.data, arguments.channel, Product(arguments.product))


def _resume(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.resume(arguments.data, arguments.channel, Product(arguments.product))


def _status(arguments: argparse.Namespace) -> int:
    from cogwork.cloud.commands import release_commands

    return release_commands.show_status(arguments.data, as_json=arguments.json)
