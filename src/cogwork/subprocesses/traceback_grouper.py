"""Joins the lines of a traceback in a program's output, so that the log has one entry for it. Pure.

Only the lines of a traceback are held back. Every other line passes at once, and ends a traceback
that is held.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Final

MAX_LINES: Final = 200
MAX_CHARACTERS: Final = 24 << 10
"""A traceback that is longer than this is passed on in parts."""

_HEADER = re.compile(
    r".*Traceback \(most recent call last\):"  # Python
    r'|  File ".*", line \d+'  # a syntax error in the program itself
    r"|(?:panic|fatal error): .*"  # Go
)
_GO_HEADER = re.compile(r"(?:panic|fatal error): ")
_GO_FRAME = re.compile(
    r"\s.*|goroutine \d+.*|created by .*|\[signal .*|exit status \d+|[\w./*()-]+\(.*\)|panic: .*"
)
_CHAINED = re.compile(
    r"(?:During handling of the above exception|The above exception was the direct cause).*"
)


class _Part(enum.Enum):
    """What is expected next."""

    FRAMES = enum.auto()
    AFTER_EXCEPTION = enum.auto()
    """Nothing, unless a chained exception follows."""
    GO_FRAMES = enum.auto()


class TracebackGrouper:
    def __init__(self) -> None:
        self._held: list[str] = []
        self._blank: list[str] = []
        """Blank lines at the end, which belong to the traceback only if more of it follows."""
        self._size = 0
        self._part: _Part | None = None

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    @property
    def held_count(self) -> int:
        return len(self._held) + len(self._blank)

    def feed(self, line: str) -> Iterator[str]:
        """Yield texts in order: a line, or the lines of a traceback joined by line breaks."""
        if self._part is not None and self._belongs(line):
            if self._is_full(line):
                yield from self.flush()
                yield line
            else:
                self._hold(line)
            return
        yield from self.flush()
        if _HEADER.fullmatch(line):
            self._part = _Part.GO_FRAMES if _GO_HEADER.match(line) else _Part.FRAMES
            self._hold(line)
        else:
            yield line

    def flush(self) -> Iterator[str]:
        """Yield what is held."""
        held, blank = self._held, self._blank
        self._held, self._blank, self._size, self._part = [], [], 0, None
        if held:
            yield "\n".join(held)
        yield from blank

    def _belongs(self, line: str) -> bool:
        """Return whether the line continues the traceback, and note what may follow it."""
        if not line.strip():
            return True
        match self._part:
            case _Part.GO_FRAMES:
                return _GO_FRAME.fullmatch(line) is not None
            case _Part.AFTER_EXCEPTION:
                if _CHAINED.fullmatch(line):
                    return True
                if _HEADER.fullmatch(line) and self._held and _CHAINED.fullmatch(self._held[-1]):
                    self._part = _Part.FRAMES
                    return True
                return False
            case _:
                if not line[:1].isspace() and not _HEADER.fullmatch(line):
                    self._part = _Part.AFTER_EXCEPTION
                return True

    def _hold(self, line: str) -> None:
        self._size += len(line)
        if line.strip():
            self._held += [*self._blank, line]
            self._blank = []
        else:
            self._blank.append(line)

    def _is_full(self, line: str) -> bool:
        return self.held_count >= MAX_LINES or self._size + len(line) > MAX_CHARACTERS


def summarize(lines: list[str]) -> str:
    """Return the line of a traceback that says what happened."""
    if _GO_HEADER.match(lines[0]):
        return lines[0]
    ends = [
        line
        for line in lines
        if line.strip()
        and not line[:1].isspace()
        and not _HEADER.fullmatch(line)
        and not _CHAINED.fullmatch(line)
    ]
    return ends[-1] if ends else lines[-1].strip()
