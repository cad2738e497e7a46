"""Finds the line of a program's output that explains why it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_TRACEBACK = "Traceback (most recent call last):"
_IGNORED = "Exception ignored "
"""Prefix of Python's report of an exception in a destructor, which does not end the program."""
_CRASH = re.compile(
    r"(?:Uncaught )?(?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?"  # Python, JavaScript, Java
    r"|panic: .*|fatal error: .*"  # Go
    r"|thread '.*' panicked at .*"  # Rust
    r"|terminate called .*|\s*what\(\): .*"  # C++
    r"|.*: error while loading shared libraries: .*"
)
_COMPLAINT = re.compile(
    r"\b(?:error|fatal|critical|exception|failed|failure|cannot|can't|unable|denied|refused|"
    r"not found|no such)\b",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"\b(?:debug|info|warn|warning|\w+Warning)\b", re.IGNORECASE)

_RECENT_LINES = 5
"""Number of last lines in which a general error message counts: older ones may be unrelated."""


def find_error_line(lines: Sequence[str]) -> str:
    """Return the last line that reports a crash, or else the last error message; empty if none.

    `lines`: the end of the output, including indentation.
    """
    written = [line.strip() for line in lines if line.strip()]
    complaints = (
        line
        for line in written[-_RECENT_LINES:]
        if _COMPLAINT.search(line) and not _HARMLESS.search(line)
    )
    found = [*_iter_crashes(lines)] or [*complaints]
    return found[-1] if found else ""


def _iter_crashes(lines: Sequence[str]) -> Iterator[str]:
    in_traceback = is_ignored = False
    for number, line in enumerate(lines):
        if line.endswith(_TRACEBACK):
            in_traceback = True
            is_ignored = number > 0 and lines[number - 1].startswith(_IGNORED)
        elif in_traceback and line[:1].isspace():
            continue  # skip a stack frame
        elif in_traceback and line:
            # This line is the exception itself, whatever the name of its class.
            in_traceback = False
            if not is_ignored:
                yield line
        elif _CRASH.fullmatch(line):
            # Rust writes the message in the line after the location.
            more = lines[number + 1 : number + 2] if line.endswith(":") else []
            yield " ".join((line.strip(), *more))
