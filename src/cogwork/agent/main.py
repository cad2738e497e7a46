"""`cogwork-agent`: keep a machine's server installed, running and current."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cogwork import __version__
from cogwork.core.errors import CogworkError

EXIT_OK: Final = 0
EXIT_FAILURE: Final = 1
DEFAULT_ROOT: Final = Path("/opt/cogwork")


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except (CogworkError, OSError) as error:
        print(f"cogwork-agent: {error}", file=sys.stderr)
        return EXIT_FAILURE


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "cogwork-agent",
        description="Keep a machine's server installed, running and current.",
    )
    parser.add_argument("--version", action="version", version=f"cogwork-agent {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run the server, and update it and the agent")
    run.set_defaults(run=_run)
    add = commands.add_parser(
        "add", help="install a release, and make it current if it is the first"
    )
    add.add_argument("release", type=Path, nargs="+", metavar="FILE", help="a release archive")
    add.set_defaults(run=_add)
    trust = commands.add_parser("trust", help="trust the releases that a key has signed")
    trust.add_argument("key", type=Path, metavar="FILE", help="the public key, an Ed25519 PEM")
    trust.set_defaults(run=_trust)
    status = commands.add_parser("status", help="show versions, and updates that wait")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=_status)
    for each in (run, add, trust, status):
        each.add_argument(
            "--root",
            type=Path,
            default=DEFAULT_ROOT,
            metavar="DIRECTORY",
            help="where versions are kept (default: %(default)s)",
        )
    return parser


def _run(arguments: argparse.Namespace) -> int:
    from cogwork.agent.agent import run_agent
    from cogwork.agent.settings import load_settings
    from cogwork.agent.slots.layout import Layout
    from cogwork.core.clock import SystemClock

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s %(message)s", level=logging.INFO)
    layout = Layout(arguments.root.absolute())
    return asyncio.run(run_agent(layout, load_settings(layout.settings), SystemClock()))


def _add(arguments: argparse.Namespace) -> int:
    from cogwork.agent.release.signature import TrustedKeys
    from cogwork.agent.slots.installer import Installer
    from cogwork.agent.slots.layout import Layout

    layout = Layout(arguments.root.absolute())
    installer = Installer(layout, TrustedKeys.load(layout.keys))
    for release in arguments.release:
        manifest = installer.install(release, lambda step: print(f"{step} …", file=sys.stderr))
        product, version = manifest.product, manifest.version
        if layout.current_version(product) is None:
            layout.switch(product, version)
            print(f"{product} {version} is installed, and current")
        else:
            print(f"{product} {version} is installed")
    return EXIT_OK


def _trust(arguments: argparse.Namespace) -> int:
    from cogwork.agent.release.signature import parse_public_key
    from cogwork.agent.slots.layout import Layout
    from cogwork.core import atomic

    data = arguments.key.read_bytes()
    try:
        parse_public_key(data)
    except ValueError as error:
        raise CogworkError(f"{arguments.key} is not a public key: {error}") from None
    layout = Layout(arguments.root.absolute())
    atomic.make_directory(layout.keys)
    path = layout.keys / f"{arguments.key.stem}.pem"
    atomic.write(path, data, 0o644)
    print(f"Releases that {arguments.key} has signed may be installed. To undo it:\n  rm {path}")
    return EXIT_OK


def _status(arguments: argparse.Namespace) -> int:
    from cogwork.agent.slots.layout import Layout
    from cogwork.agent.status import format_status, read_status

    status = read_status(Layout(arguments.root.absolute()))
    print(json.dumps(status, indent=2) if arguments.json else format_status(status))
    return EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
