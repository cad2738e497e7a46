"""The log on standard output: plain text for programs, colour for people, JSON for collectors."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Mapping

from cogwork.logs.entry import Entry, as_json, as_text
from cogwork.logs.sink import Write

_COLOURS = {"DEBUG": "2", "WARN": "33", "ERROR": "31", "CRITICAL": "1;31"}


def descriptor_writer(descriptor: int) -> Write:
    """Waits for a slow reader. One that has gone away is no reason to stop."""

    def write(lines: bytes) -> None:
        try:
            while lines:
                lines = lines[_written(descriptor, lines) :]
        except OSError:
            pass

    return write


def console_format(descriptor: int, environment: Mapping[str, str]) -> Callable[[Entry], str]:
    if environment.get("COGWORK_LOG_FORMAT") == "json":
        return as_json
    plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
    return as_text if plain or not os.isatty(descriptor) else in_colour


def in_colour(entry: Entry) -> str:
    moment, level, rest = as_text(entry).split("\t", 2)
    colour = _COLOURS.get(level)
    shown = f"\x1b[{colour}m{level}\x1b[0m" if colour else level
    return f"\x1b[2m{moment}\x1b[0m\t{shown}\t{rest}"


def _written(descriptor: int, lines: bytes) -> int:
    try:
        return os.write(descriptor, lines)
    except BlockingIOError:
        # Whoever started the server may have made it so.
        select.select([], [descriptor], [])
        return 0
