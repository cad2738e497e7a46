"""The commands `cogwork explain` and `cogwork completion`."""

from __future__ import annotations

import argparse

from cogwork.cli.parsers.options import JSON
from cogwork.core.command_line import argument, command, option

EXPLAIN = command(
    "explain",
    "Explain a diagnostic code",
    "cogwork.cli.config.explain:explain",
    argument("CODE", "code, e.g. E103; omit it to list all codes", nargs="?"),
    JSON,
    epilog="Exit status: 0, 2 if there is no such code.",
)
COMPLETION = command(
    "completion",
    "Print the script that completes commands in a shell",
    "cogwork.cli.completion:completion",
    argument("SHELL", "the shell you use", choices=("bash", "zsh", "fish")),
    # Used by the completion scripts: the words of the command line up to the cursor.
    option("--words", None, argparse.SUPPRESS, nargs=argparse.REMAINDER),
)
