"""Commands whose output is cut off, as by `| head`, end quietly."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path


def run_until_cut_off(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; 0 if the reader of its output has gone."""
    try:
        try:
            return command()
        finally:  # also when a parser exits after its help
            sys.stdout.flush()
    except BrokenPipeError:
        # Discard what would be flushed at exit.
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
        return 0
