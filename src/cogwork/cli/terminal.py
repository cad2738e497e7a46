"""Terminal output of commands: JSON, colors, errors, progress, alternate screen. Also exports the
exit codes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from cogwork.cli.exit_codes import EXIT_FAILURE as EXIT_FAILURE
from cogwork.cli.exit_codes import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from cogwork.cli.exit_codes import EXIT_OK as EXIT_OK
from cogwork.cli.exit_codes import EXIT_USAGE as EXIT_USAGE
from cogwork.core.escape import escape, escape_json
from cogwork.core.files import atomic

_ENTER_ALTERNATE_SCREEN = "\x1b[?1049h\x1b[?25l"
_LEAVE_ALTERNATE_SCREEN = "\x1b[0m\x1b[?25h\x1b[?1049l"

_BAR_WIDTH = 24
_STYLES = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}


def print_json(value: Any) -> None:
    print(format_json(value))


def format_json(value: Any) -> str:
    return escape_json(json.dumps(value, indent=2, ensure_ascii=False))


def print_text(text: str, file: TextIO | None = None) -> None:
    """Print lines and escape the control characters that quoted text may contain."""
    print("\n".join(map(escape, text.split("\n"))), file=file)


def print_error(message: str) -> None:
    print_text(message, sys.stderr)


def paint(text: str, style: str) -> str:
    """Color the text if standard output is a terminal that supports it."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def write_picture(file: Path, data: bytes) -> None:
    """Write a file atomically with the user's default permissions, into an existing folder."""
    if not file.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    umask = os.umask(0o077)
    os.umask(umask)
    atomic.write(file, data, 0o666 & ~umask)


class ProgressLine:
    """A line on standard error that shows progress, if standard error is a terminal."""

    def __init__(self) -> None:
        self.is_visible = sys.stderr.isatty()
        self._shown = ""

    def show(self, text: str) -> None:
        """Replace the line."""
        if self.is_visible and text != self._shown:
            self._shown = text
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
            print(f"\r{escape(text)[: columns - 1]}\x1b[K", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            self._shown = ""
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


def format_bar(done: int, total: int) -> str:
    """Return a progress bar with the percentage."""
    part = min(done / total, 1.0) if total > 0 else 1.0
    return f"[{'#' * int(part * _BAR_WIDTH):{_BAR_WIDTH}}] {int(100 * part):3}%"


class Screen:
    """A terminal that a command draws on."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def size(self) -> tuple[int, int]:
        """Return the number of columns and lines."""
        columns, lines = os.get_terminal_size(self._descriptor)
        return columns or 80, lines or 24

    def write(self, text: str) -> None:
        """Write the whole text at once, so that no partial image is visible."""
        rest = memoryview(text.encode(errors="replace"))
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


@contextlib.contextmanager
def alternate_screen() -> Iterator[Screen]:
    """Switch to the alternate screen without a cursor, and restore the terminal at the end."""
    screen = Screen(sys.stdout.fileno())
    terminated = signal.signal(signal.SIGTERM, _raise_exit)
    try:
        screen.write(_ENTER_ALTERNATE_SCREEN)
        yield screen
    finally:
        # A second Ctrl-C must not prevent the restore.
        interrupted = signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, terminated)
        with contextlib.suppress(OSError):  # the terminal was closed
            screen.write(_LEAVE_ALTERNATE_SCREEN)
        signal.signal(signal.SIGINT, interrupted)


@contextlib.contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, so that the command cleans up."""
    before = {
        number: signal.signal(number, _raise_exit) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _raise_exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)
