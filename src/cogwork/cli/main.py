"""The `cogwork` command, for people who configure and operate machines."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Callable, Sequence

from cogwork.cli.commands import build_parser
from cogwork.cli.exit_codes import EXIT_INTERRUPTED
from cogwork.core.cut_output import run_until_cut_off

Run = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print an escape for a character that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return run_until_cut_off(lambda: _run(argv))
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # end the line on which the terminal shows ^C
        return EXIT_INTERRUPTED


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    # Import only the command that runs, so that --help and the other commands start fast.
    module, _, function = arguments.run.partition(":")
    run: Run = getattr(importlib.import_module(module), function)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
