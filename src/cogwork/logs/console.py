"""Writes the log to standard output: plain text for programs, color for terminals, JSON for
collectors."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping

from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.sink import Write

_COLORS = {"DEBUG": "2", "WARN": "33", "ERROR": "31", "CRITICAL": "1;31"}


def descriptor_writer(descriptor: int) -> Write:
    """Return a writer that waits for slow readers, and ignores closed pipes."""

    def write(lines: bytes) -> None:
        try:
            while lines:
                lines = lines[_write_some(descriptor, lines) :]
        except OSError:
            pass

    return write


def console_format(descriptor: int, environment: Mapping[str, str]) -> Callable[[Entry], str]:
    if environment.get("COGWORK_LOG_FORMAT") == "json":
        return as_json
    plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
    return as_text if plain or not os.isatty(descriptor) else as_colored_text


def as_colored_text(entry: Entry) -> str:
    # The first two columns never contain text from a log call, and therefore no tabs.
    timestamp, level, rest = as_text(entry).split("\t", 2)
    color = _COLORS.get(level)
    colored_level = f"\x1b[{color}m{level}\x1b[0m" if color else level
    return f"\x1b[2m{timestamp}\x1b[0m\t{colored_level}\t{rest}"


def _write_some(descriptor: int, lines: bytes) -> int:
    try:
        return os.write(descriptor, lines)
    except BlockingIOError:
        # Wait, because the parent process may have made the descriptor non-blocking.
        select.select([], [descriptor], [])
        return 0
