"""End commands quietly when the reader of their output exits, as in `cogwork logs | head`."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from pathlib import Path


def run_until_cut_off(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; 0 if the reader of its output has exited."""
    try:
        try:
            return command()
        finally:  # A parser may exit after it has printed its help
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_cut_off():
            raise  # the error belongs to another pipe
        # Discard the data that Python would flush at exit.
        with Path(os.devnull).open("w") as null:
            os.dup2(null.fileno(), sys.stdout.fileno())
        return 0


def _is_cut_off() -> bool:
    """Return whether the reader of standard output has closed the pipe."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))
