"""`cogwork`: for those who write configurations, and those who look after machines."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cogwork.cli.commands import command_line

Run = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character of the file gets its number instead.
        sys.stdout.reconfigure(errors="backslashreplace")
    arguments = command_line().parse_args(argv)
    # A command is imported when it is run, so that --help and the others do not wait for it.
    module, _, function = arguments.run.partition(":")
    run: Run = getattr(importlib.import_module(module), function)
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, `head` for one, has seen enough. What is left is flushed at exit, to nowhere.
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
