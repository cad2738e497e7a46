"""The output of a child process, split into lines, with bounded memory and rate."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from cogwork.core.clock import Clock
from cogwork.core.escape import TAB_WIDTH
from cogwork.core.limits.loop_budget import LoopBudget
from cogwork.subprocesses.error_line import find_error_line
from cogwork.subprocesses.traceback_grouper import TracebackGrouper

MAX_LINE_BYTES = 16 << 10
MAX_LINES_PER_SECOND = 1000
_READ_SIZE = 512
"""Bytes per read while lines are logged: a few lines, so that the event loop stays responsive."""
_SKIP_READ_SIZE = 64 << 10
"""Bytes per read while lines are dropped: the capacity of a pipe."""
_MAX_DEBT = 0.01
"""A reader does not wait if the pause would be at most this many seconds, so that a burst of output
is read at once."""
_TURN_COST = 0.0005
"""Seconds of event loop time that a waiting reader reserves for its turn."""
_DRAIN_TIMEOUT = 1.0
"""Timeout in seconds for reading the remaining output after the process has exited."""
_MAX_DRAIN = 1 << 20
"""Maximum bytes to read after the process has exited, because its children may write forever."""
_TAIL_BYTES = 4 << 10
_TAIL_LINES = 5
_MAX_TAIL_LINE = 300
"""Maximum characters of each line that an exit report quotes."""
_GAP_REPORT_DELAY = 1.0
_GROUP_TIMEOUT = 0.2
"""Seconds without a further line after which a traceback is passed on."""
_MAX_GROUP_TIME = 2.0
_FRAME = re.compile(r'File ".*", line \d+')
_ANSI_STYLE = re.compile(r"\x1b\[[0-9;:]*m")


class OutputStream(enum.Enum):
    STDOUT = "stdout"
    STDERR = "stderr"


class LineSplitter:
    """Splits bytes into lines, and limits the length of lines and the lines per second."""

    def __init__(self) -> None:
        self._partial = b""
        """The unfinished line, up to the maximum length."""
        self._is_cut = False
        """Whether the unfinished line is too long, so that the rest of it is dropped."""
        self._is_skipping = False
        """Whether the unfinished line is dropped entirely."""
        self._skipped = 0
        self._window_start = float("-inf")
        self._emitted = 0
        self._tail = b""

    def feed(self, data: bytes, now: float) -> Iterator[str]:
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        at = 0
        while at < len(data):
            if self._is_rate_exceeded(now) or self._is_skipping:
                at = self._skip(data, at, now)
                continue
            end = data.find(b"\n", at)
            self._append(data[at : end if end >= 0 else len(data)])
            if end < 0:
                return
            at = end + 1
            yield from self._finish_line()

    def skip(self, data: bytes) -> None:
        """Drop the data, but keep the last lines."""
        self._tail = (self._tail + data[-_TAIL_BYTES:])[-_TAIL_BYTES:]
        self._drop(data, 0)

    def will_skip(self, now: float) -> bool:
        """Return whether the next bytes will be dropped."""
        return self._is_cut or self._is_rate_exceeded(now)

    def flush(self) -> Iterator[str]:
        """Yield the remaining text at the end of the output."""
        if self._is_skipping:
            self._is_skipping = False
            self._skipped += 1
        yield from self.report_gap()
        if self._partial:
            yield from self._finish_line()

    def report_gap(self) -> Iterator[str]:
        """Yield a message with the number of dropped lines, if any were dropped."""
        count, self._skipped = self._skipped, 0
        if count:
            yield "dropped 1 line" if count == 1 else f"dropped {count} lines"

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines, including dropped ones."""
        written = (line.strip() for line in self._tail_lines())
        texts = deque((text for text in written if text and not _is_marker(text)), _TAIL_LINES)
        return tuple(_shorten(text) for text in _drop_partial_frame(list(texts)))

    @property
    def error_line(self) -> str:
        """The line near the end that explains why the process ended; empty if there is none."""
        return _shorten(find_error_line(self._tail_lines()))

    def _tail_lines(self) -> list[str]:
        lines = self._tail.split(b"\n")
        if len(self._tail) == _TAIL_BYTES and len(lines) > 1:
            del lines[0]  # the beginning of this line was cut off
        return [_decode_line(line) for line in lines]

    def _is_rate_exceeded(self, now: float) -> bool:
        if not 0 <= now - self._window_start < 1:
            self._window_start, self._emitted = now, 0
        return self._emitted >= MAX_LINES_PER_SECOND

    def _skip(self, data: bytes, at: int, now: float) -> int:
        if self._is_rate_exceeded(now):
            return self._drop(data, at)
        end = data.find(b"\n", at)
        if end < 0:
            return len(data)
        self._is_skipping = False
        self._skipped += 1
        return end + 1

    def _drop(self, data: bytes, at: int) -> int:
        self._skipped += data.count(b"\n", at)
        self._is_skipping = data[-1:] != b"\n"
        self._partial, self._is_cut = b"", False
        return len(data)

    def _append(self, piece: bytes) -> None:
        if self._is_cut:
            return
        self._partial += piece
        if len(self._partial) > MAX_LINE_BYTES:
            self._partial, self._is_cut = self._partial[:MAX_LINE_BYTES], True

    def _finish_line(self) -> Iterator[str]:
        yield from self.report_gap()
        text = _decode_line(self._partial) + (" … (line truncated)" if self._is_cut else "")
        self._partial, self._is_cut = b"", False
        self._emitted += 1
        yield text


class PipeReader:
    """Reads a pipe until it is closed, and passes on its lines within the limits.

    All readers share a budget of event loop time. A process that writes too much blocks, but slows
    nothing else down.
    """

    def __init__(
        self,
        pipe: IO[bytes],
        on_line: Callable[[str], None],
        clock: Clock,
        budget: LoopBudget,
    ) -> None:
        """`on_line` gets each line. It gets the lines of a traceback together, joined by line
        breaks."""
        self._pipe = pipe
        self._on_line = on_line
        self._clock = clock
        self._budget = budget
        self._lines = LineSplitter()
        self._loop = asyncio.get_running_loop()
        self._grouper = TracebackGrouper()
        self._group_timer: asyncio.TimerHandle | None = None
        self._gap_timer: asyncio.TimerHandle | None = None
        self._pause_timer: asyncio.TimerHandle | None = None
        self._fd = pipe.fileno()
        os.set_blocking(self._fd, False)
        self._loop.add_reader(self._fd, self._on_readable)

    @property
    def last_lines(self) -> tuple[str, ...]:
        return self._lines.last_lines

    @property
    def error_line(self) -> str:
        return self._lines.error_line

    async def drain(self) -> None:
        """Read the data in the pipe, without waiting for other processes that keep the pipe
        open."""
        left, deadline = _MAX_DRAIN, self._loop.time() + _DRAIN_TIMEOUT
        while left > 0:
            pause = self._reserve_turn()
            if self._loop.time() + pause > deadline:
                return
            if pause > 0:
                await asyncio.sleep(pause)
            if self._pipe.closed or not (count := self._read()):
                return
            left -= count

    def close(self) -> None:
        """Drop unread data, but keep the last lines."""
        if self._pipe.closed:
            return
        self._skip_rest()
        self._loop.remove_reader(self._fd)
        self._pipe.close()
        for timer in (self._gap_timer, self._pause_timer):
            if timer is not None:
                timer.cancel()
        self._emit(self._lines.flush())
        self._flush_group()

    def _on_readable(self) -> None:
        if (pause := self._reserve_turn()) > 0:
            self._loop.remove_reader(self._fd)
            self._pause_timer = self._loop.call_later(pause, self._take_turn)
        else:
            self._read()

    def _reserve_turn(self) -> float:
        """Return the seconds to wait before reading. Waiting readers take turns."""
        if self._budget.spend(0.0) <= _MAX_DEBT:
            return 0.0
        return self._budget.spend(_TURN_COST)

    def _take_turn(self) -> None:
        self._pause_timer = None
        self._loop.add_reader(self._fd, self._on_readable)
        self._read()

    def _read(self) -> int:
        """Read once, and return the number of bytes read."""
        now = self._clock.monotonic()
        # Measure CPU time: on a busy computer, most of the wall-clock time belongs to other
        # processes.
        began = time.thread_time()
        skips = self._lines.will_skip(now)
        try:
            data = os.read(self._fd, _SKIP_READ_SIZE if skips else _READ_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(self._fd)
            return 0
        self._emit(self._lines.feed(data, now))
        if skips and self._gap_timer is None:
            self._gap_timer = self._loop.call_later(_GAP_REPORT_DELAY, self._report_gap)
        self._budget.spend(time.thread_time() - began)
        return len(data)

    def _skip_rest(self) -> None:
        left = _MAX_DRAIN
        with contextlib.suppress(BlockingIOError):
            while left > 0 and (data := os.read(self._fd, _SKIP_READ_SIZE)):
                self._lines.skip(data)
                left -= len(data)

    def _report_gap(self) -> None:
        self._gap_timer = None
        self._emit(self._lines.report_gap())

    def _emit(self, lines: Iterator[str]) -> None:
        for line in lines:
            self._pass_on(self._grouper.feed(line))
        if self._grouper.is_holding and self._group_timer is None:
            self._wait_for_group(self._loop.time() + _MAX_GROUP_TIME)

    def _wait_for_group(self, deadline: float) -> None:
        self._group_timer = self._loop.call_later(
            _GROUP_TIMEOUT, self._check_group, self._grouper.held_count, deadline
        )

    def _check_group(self, count: int, deadline: float) -> None:
        """Pass on a traceback that has not grown since there were `count` lines."""
        if self._grouper.held_count != count and self._loop.time() < deadline:
            self._wait_for_group(deadline)
        else:
            self._flush_group()

    def _flush_group(self) -> None:
        if self._group_timer is not None:
            self._group_timer.cancel()
            self._group_timer = None
        self._pass_on(self._grouper.flush())

    def _pass_on(self, texts: Iterator[str]) -> None:
        for line in texts:
            try:
                self._on_line(line)
            except Exception as error:
                # Continue after an error of the callback: the process must still be read and
                # stopped.
                context = {"message": "failed to handle a line of output", "exception": error}
                self._loop.call_exception_handler(context)


def _decode_line(line: bytes) -> str:
    """Decode a line. Remove colors and tabs, which the log would show as escape sequences."""
    text = line.removesuffix(b"\r").decode(errors="replace")
    if "\x1b" in text:
        text = _ANSI_STYLE.sub("", text)
    return text.expandtabs(TAB_WIDTH)


def _is_marker(text: str) -> bool:
    """Return whether a line only marks a part of the line above, as in tracebacks."""
    return not text.strip("~^ ")


def _drop_partial_frame(texts: list[str]) -> list[str]:
    """Drop the code of a stack frame whose location is not among the lines."""
    first = next((at for at, text in enumerate(texts) if _FRAME.match(text)), 0)
    return texts[first:] if first == 1 else texts


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TAIL_LINE else text[: _MAX_TAIL_LINE - 1] + "…"
