"""The parsers of `cogwork explain` and `cogwork completion`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cogwork.cli.parsers.options import Subparsers


def add_explain(commands: Subparsers) -> None:
    explain = commands.add_parser("explain", help="Explain a diagnostic code")
    explain.add_argument(
        "code", metavar="CODE", nargs="?", help="code, e.g. E103; omit it to list all codes"
    )
    explain.set_defaults(run="cogwork.cli.explain:explain")


def add_completion(commands: Subparsers) -> None:
    completion = commands.add_parser(
        "completion",
        help="print the script that completes commands in a shell",
    )
    completion.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="the shell you use"
    )
    # Used by the completion scripts: the words of the command line up to the cursor.
    completion.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    completion.set_defaults(run="cogwork.cli.completion:completion")
