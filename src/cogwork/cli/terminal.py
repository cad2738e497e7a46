"""How commands talk: exit codes, JSON for programs, colour and pictures for people."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cogwork.core import atomic

FINE = 0
FAULTS = 1
USAGE = 2

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"

_STYLES = {"red": "31", "yellow": "33", "bold": "1", "dim": "2"}


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def complain(message: str) -> None:
    print(message, file=sys.stderr)


def paint(text: str, style: str) -> str:
    """Colour on a terminal that wants it, plain text elsewhere."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def write_picture(file: Path, data: bytes) -> None:
    """With the rights of any file that the user makes, into a folder that is there."""
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    umask = os.umask(0o077)
    os.umask(umask)
    atomic.write(file, data, 0o666 & ~umask)


class Screen:
    """All of a terminal, for a command that draws on it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size(self) -> tuple[int, int]:
        """Columns and lines."""
        columns, lines = os.get_terminal_size(self._descriptor)
        return columns or 80, lines or 24

    def show(self, text: str) -> None:
        """In one write, so that nobody sees half a picture."""
        rest = memoryview(text.encode(errors="replace"))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


@contextlib.contextmanager
def whole_screen() -> Iterator[Screen]:
    """Another screen, without a cursor. What was on the terminal comes back, however this ends."""
    screen = Screen(sys.stdout.fileno())
    terminated = signal.signal(signal.SIGTERM, _end)
    try:
        screen.show(_ENTER)
        yield screen
    finally:
        # Whoever presses Ctrl-C twice wants the screen back no less.
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, terminated)
        with contextlib.suppress(OSError):  # the terminal is gone
            screen.show(_LEAVE)
        signal.signal(signal.SIGINT, interrupted)


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """For a command that has something to clean up, whoever ends it."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    raise SystemExit(128 + number)
