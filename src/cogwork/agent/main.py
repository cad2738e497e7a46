"""`cogwork-agent`: keep a machine's server installed, running and current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cogwork import __version__
from cogwork.agent import commands
from cogwork.agent.commands import DEFAULT_CONFIG, DEFAULT_USER
from cogwork.core.command_line import (
    AddCommand,
    add_descriptions,
    argument,
    command,
    option,
    switch,
)
from cogwork.core.cut_output import run_until_cut_off
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

EXIT_FAILURE: Final = 1
DEFAULT_ROOT: Final = Path("/opt/cogwork")

_CONFIG: Final = option(
    "--config",
    "FILE",
    f"the configuration of the machine (default: as for the installed agent, or {DEFAULT_CONFIG})",
    parse=Path,
)
_ROOT: Final = option(
    "--root",
    "DIRECTORY",
    f"where versions are kept (default: {DEFAULT_ROOT})",
    parse=Path,
    default=DEFAULT_ROOT,
)
_COMMANDS: Final[tuple[AddCommand, ...]] = (
    command("run", "Run the server, and update it and the agent", commands.run, _ROOT),
    command(
        "add",
        "Install a release, and make it current if it is the first",
        commands.add,
        argument("FILE", "a release archive", dest="release", parse=Path, nargs="+"),
        _ROOT,
    ),
    command(
        "trust",
        "Trust the releases that a key has signed",
        commands.trust,
        argument("FILE", "the public key, an Ed25519 PEM", dest="key", parse=Path),
        _ROOT,
    ),
    command(
        "status",
        "Show versions, and updates that wait",
        commands.status,
        switch("--json", "print JSON"),
        _ROOT,
    ),
    command("retry", "Try versions that failed once more", commands.retry, _ROOT),
    command(
        "allow",
        "Go back to an older version once it is offered",
        commands.allow,
        argument("PRODUCT", "server or agent", choices=("server", "agent")),
        argument("VERSION", "the version to go back to"),
        _ROOT,
    ),
    command(
        "install",
        "Install the agent and the server as services",
        commands.install,
        option(
            "--release",
            "FILE",
            "a release archive of the server or the agent; give it for both",
            parse=Path,
            repeated=True,
        ),
        option(
            "--key",
            "FILE",
            "a public key whose releases are trusted, an Ed25519 PEM",
            parse=Path,
            repeated=True,
        ),
        option("--updates", "ADDRESS", "a folder or an address with releases (default: the cloud)"),
        option(
            "--user",
            "USER",
            "the user that the server runs as (default: as for the installed agent, or "
            f"{DEFAULT_USER})",
        ),
        _CONFIG,
        _ROOT,
    ),
    command(
        "uninstall",
        "Remove what `install` created, but no data",
        commands.uninstall,
        switch("--purge", "delete the configuration, the data and the user, too"),
        _CONFIG,
        _ROOT,
    ),
    command(
        "join",
        "Join a cloud with a claim code",
        commands.join,
        argument("URL", "the address of the cloud"),
        argument("CODE", "from: cogwork fleet claim PART"),
        _CONFIG,
        _ROOT,
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    return run_until_cut_off(lambda: _run_command(argv))


def _run_command(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except BrokenPipeError:
        raise
    except CogworkError as error:
        print(f"cogwork-agent: {error}", file=sys.stderr)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        print(f"cogwork-agent: {where}{os_reason(error)}", file=sys.stderr)
    return EXIT_FAILURE


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "cogwork-agent",
        description="Keep a machine's server installed, running and current.",
    )
    parser.add_argument("--version", action="version", version=f"cogwork-agent {__version__}")
    subparsers = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_command in _COMMANDS:
        add_command(subparsers)
    add_descriptions(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
