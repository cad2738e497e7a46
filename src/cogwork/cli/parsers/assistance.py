"""The commands `cogwork explain` and `cogwork completion`."""

from __future__ import annotations

import argparse

from cogwork.core.command_line import argument, command, option

EXPLAIN = command(
    "explain",
    "Explain a diagnostic code",
    "cogwork.cli.config.explain:explain",
    argument("CODE", "code, e.g. E103; omit it to list all codes", nargs="?"),
)
COMPLETION = command(
    "completion",
    "print the script that completes commands in a shell",
    "cogwork.cli.completion:completion",
    argument("SHELL", "the shell you use", choices=("bash", "zsh", "fish")),
    # Used by the completion scripts: the words of the command line up to the cursor.
    option("--words", None, argparse.SUPPRESS, nargs=argparse.REMAINDER),
)
