"""The `cogwork` command, for people who configure and operate machines."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cogwork.cli.commands import build_parser
from cogwork.cli.exit_codes import EXIT_INTERRUPTED, EXIT_OK

Run = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print an escape for a character that the terminal's encoding lacks.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe. Discard what is flushed at exit.
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
        return EXIT_OK
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            print(file=sys.stderr)  # after the ^C of the terminal
        return EXIT_INTERRUPTED
    return code


def _run(argv: Sequence[str] | None) -> int:
    arguments = build_parser().parse_args(argv)
    # Import only the command that runs, so that --help and the other commands start fast.
    module, _, function = arguments.run.partition(":")
    run: Run = getattr(importlib.import_module(module), function)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
