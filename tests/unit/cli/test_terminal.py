"""Progress on a terminal, and none in a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import select
import struct
import sys
import termios
from collections.abc import Iterator

import pytest
from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.cli.machine import copy
from cogwork.cli.terminal import ProgressLine, format_bar


class Terminal:
    """A pseudo-terminal, seen from the person's end."""

    def __init__(self, screen: int) -> None:
        self._screen = screen
        self._shown = ""

    def read_until(self, end: str) -> str:
        """Return everything shown so far; each write arrives as a part of its own."""
        while not self._shown.endswith(end):
            assert select.select([self._screen], [], [], 10)[0], f"only {self._shown!r} was shown"
            self._shown += os.read(self._screen, 1000).decode()
        return self._shown


@contextlib.contextmanager
def terminal_as_stderr(monkeypatch: pytest.MonkeyPatch, columns: int = 40) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        yield Terminal(ours)
    os.close(ours)


def test_progress_line_replaces_itself_and_disappears(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal_as_stderr(monkeypatch) as terminal:
        with ProgressLine() as line:
            line.show("loading")
            line.show("loading")
            line.show("evil \x1b[2J" + "x" * 100)
        shown = terminal.read_until("\r\x1b[K")
    assert shown == ("\rloading\x1b[K\r" + ("evil \\x1b[2J" + "x" * 100)[:39] + "\x1b[K\r\x1b[K")


def test_nothing_is_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine() as line:
        line.show("loading")
    assert stream.getvalue() == ""


def test_bar() -> None:
    assert format_bar(0, 100) == f"[{' ' * 24}]   0%"
    assert format_bar(50, 100) == f"[{'#' * 12}{' ' * 12}]  50%"
    assert format_bar(200, 100) == f"[{'#' * 24}] 100%"
    assert format_bar(0, 0) == f"[{'#' * 24}] 100%"


def test_copy_shows_a_bar_for_a_large_file_and_counts_small_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(copy, "_QUIET_SECONDS", 0.0)
    with terminal_as_stderr(monkeypatch, columns=100) as terminal:
        progress = copy.CopyProgress()
        progress.update(messages.FileData(name="small", size=3, data=b"abc", eof=True))
        progress.update(messages.FileData(name="large", size=20_000_000, data=bytes(5_000_000)))
        progress.clear()
        shown = terminal.read_until("\r\x1b[K")
    assert "\r1 file, 0.0 MB in 0.0 s: small\x1b[K" in shown
    assert f"\r[{'#' * 6}{' ' * 18}]  25% 20 MB: large\x1b[K" in shown
