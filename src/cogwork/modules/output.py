"""What a child process says, as lines: however much it is, little of it is kept."""

from __future__ import annotations

import asyncio
import enum
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from typing import IO

from cogwork.core.clock import Clock

LONGEST_LINE = 16 << 10
LINES_A_SECOND = 1000
_SIP = 2 << 10
"""Bytes that are read at once while lines are told: a few dozen lines, then others have a turn."""
_GULP = 64 << 10
"""Bytes that are read at once while lines are left out: all that a pipe holds."""
_MEAL = 4 << 20
_REST = 0.03
"""Seconds without reading after each meal of what is left out: about 120 MB/s, and an eighth of
the loop's time. Whoever writes more waits, and not those who have nothing to do with it."""
_LAST_WORDS = 1 << 20
"""Bytes that are read after the process has exited: what it left running may go on for ever."""
_TAIL = 4 << 10
_LAST_LINES = 5
_LAST_LINE = 300
"""Characters of a line that are kept for those who ask how it ended."""
_CALM = 1.0
_STYLE = re.compile(r"\x1b\[[0-9;:]*m")
_TAB = 4


class Stream(enum.Enum):
    STDOUT = "stdout"
    STDERR = "stderr"


class Lines:
    """Bytes in, lines out: at most so many in a second, and none without end."""

    def __init__(self) -> None:
        self._begun = b""
        """The line that has no end yet, or as much of it as is told."""
        self._cut = False
        """What comes until the next end of a line is more than is told of one."""
        self._skipping = False
        """The line that has no end yet is left out."""
        self._left_out = 0
        self._second = float("-inf")
        self._told = 0
        self._tail = b""

    def feed(self, data: bytes, now: float) -> Iterator[str]:
        self._tail = (self._tail + data[-_TAIL:])[-_TAIL:]
        at = 0
        while at < len(data):
            if self._full(now) or self._skipping:
                at = self._skip(data, at, now)
                continue
            end = data.find(b"\n", at)
            self._add(data[at : end if end >= 0 else len(data)])
            if end < 0:
                return
            at = end + 1
            yield from self._end()

    def leaves_out(self, now: float) -> bool:
        """Whether nothing is told of what comes next."""
        return self._cut or self._full(now)

    def rest(self) -> Iterator[str]:
        """After the last byte."""
        if self._skipping:
            self._skipping = False
            self._left_out += 1
        yield from self.gap()
        if self._begun:
            yield from self._end()

    def gap(self) -> Iterator[str]:
        """How much was left out, if anything was."""
        count, self._left_out = self._left_out, 0
        if count:
            yield "1 line was left out" if count == 1 else f"{count} lines were left out"

    @property
    def last(self) -> tuple[str, ...]:
        """The last lines, those that were left out too."""
        lines = self._tail.split(b"\n")
        if len(self._tail) == _TAIL and len(lines) > 1:
            del lines[0]  # where it begins is not kept
        texts = deque((text for line in lines if (text := _text(line).strip())), _LAST_LINES)
        return tuple(_shortened(text) for text in texts)

    def _full(self, now: float) -> bool:
        if not 0 <= now - self._second < 1:
            self._second, self._told = now, 0
        return self._told >= LINES_A_SECOND

    def _skip(self, data: bytes, at: int, now: float) -> int:
        if self._full(now):
            self._left_out += data.count(b"\n", at)
            self._skipping = data[-1:] != b"\n"
            self._begun, self._cut = b"", False
            return len(data)
        end = data.find(b"\n", at)
        if end < 0:
            return len(data)
        self._skipping = False
        self._left_out += 1
        return end + 1

    def _add(self, piece: bytes) -> None:
        if self._cut:
            return
        self._begun += piece
        if len(self._begun) > LONGEST_LINE:
            self._begun, self._cut = self._begun[:LONGEST_LINE], True

    def _end(self) -> Iterator[str]:
        yield from self.gap()
        text = _text(self._begun) + (" … (the rest of the line was left out)" if self._cut else "")
        self._begun, self._cut = b"", False
        self._told += 1
        yield text


class Reader:
    """One pipe, read whenever there is something, however little of it is told."""

    def __init__(self, pipe: IO[bytes], tell: Callable[[str], None], clock: Clock) -> None:
        self._pipe = pipe
        self._tell = tell
        self._clock = clock
        self._lines = Lines()
        self._loop = asyncio.get_running_loop()
        self._calm: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._eaten = 0
        self._number = pipe.fileno()
        os.set_blocking(self._number, False)
        self._go_on()

    @property
    def last_lines(self) -> tuple[str, ...]:
        return self._lines.last

    def drain(self) -> None:
        """What is there by now, without waiting for whoever else has the pipe open."""
        left = _LAST_WORDS
        while left > 0 and (count := self._read()):
            left -= count

    def close(self) -> None:
        if self._pipe.closed:
            return
        self.drain()
        self._loop.remove_reader(self._number)
        self._pipe.close()
        for timer in (self._calm, self._resting):
            if timer is not None:
                timer.cancel()
        self._pass_on(self._lines.rest())

    def _go_on(self) -> None:
        self._resting = None
        self._loop.add_reader(self._number, self._read)

    def _read(self) -> int:
        """How many bytes there were."""
        now = self._clock.monotonic()
        leaves_out = self._lines.leaves_out(now)
        try:
            data = os.read(self._number, _GULP if leaves_out else _SIP)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(self._number)
            return 0
        self._pass_on(self._lines.feed(data, now))
        if leaves_out:
            self._rest_after(len(data))
        return len(data)

    def _rest_after(self, count: int) -> None:
        if self._calm is None:
            self._calm = self._loop.call_later(_CALM, self._after_the_flood)
        self._eaten += count
        if self._eaten >= _MEAL and self._resting is None:
            self._eaten = 0
            self._loop.remove_reader(self._number)
            self._resting = self._loop.call_later(_REST, self._go_on)

    def _after_the_flood(self) -> None:
        self._calm = None
        self._pass_on(self._lines.gap())

    def _pass_on(self, lines: Iterator[str]) -> None:
        for line in lines:
            try:
                self._tell(line)
            except Exception as error:
                # Whoever listens badly must not keep a process from being read, or from ending.
                context = {"message": "a line of output could not be told", "exception": error}
                self._loop.call_exception_handler(context)


def _text(line: bytes) -> str:
    """Without colours, which programs put between what they say, and without tabs: both would be
    shown as signs that nobody can read."""
    text = line.removesuffix(b"\r").decode(errors="replace")
    if "\x1b" in text:
        text = _STYLE.sub("", text)
    return text.expandtabs(_TAB)


def _shortened(text: str) -> str:
    return text if len(text) <= _LAST_LINE else text[: _LAST_LINE - 1] + "…"
