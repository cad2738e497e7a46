"""Commands whose output is cut off, as by `| head`, end quietly."""

from __future__ import annotations

import os
import select
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
        if not _is_cut_off():
            raise  # it is another pipe
        # Discard what would be flushed at exit.
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
        return 0


def _is_cut_off() -> bool:
    """Return whether nobody reads the output any more."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
