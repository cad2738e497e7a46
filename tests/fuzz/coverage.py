"""Line coverage of a few modules, measured with the interpreter's own trace function."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

Line = tuple[str, int]


class LineCoverage:
    """Counts lines inside functions only: importing a module runs the others."""

    def __init__(self, parsers: Sequence[str]) -> None:
        """Each is `module`, `module:function` or `module:Class`."""
        self._lines: set[Line] = set()
        for parser in parsers:
            module, _, wanted = parser.partition(":")
            self._lines |= set(
                _function_lines(str(importlib.import_module(module).__file__), wanted)
            )
        self._files = {file for file, _ in self._lines}
        self._hit: set[Line] = set()

    def __str__(self) -> str:
        share = 100 * len(self._hit) // max(1, len(self._lines))
        return f"{len(self._hit)}/{len(self._lines)} ({share} %)"

    def trace(self, run: Callable[[], None]) -> None:
        """Trace the run, including the threads that it starts."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            run()
        finally:
            sys.settrace(before)
            threading.settrace(None)

    def _enter(self, frame: FrameType, _: str, __: Any) -> Any:
        return self._record_line if frame.f_code.co_filename in self._files else None

    def _record_line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            line = (frame.f_code.co_filename, frame.f_lineno)
            if line in self._lines:
                self._hit.add(line)
        return self._record_line


def _function_lines(file: str, wanted: str) -> Iterator[Line]:
    with open(file, encoding="utf-8") as source:  # noqa: PTH123 - as the import system names it
        module = compile(source.read(), file, "exec")
    for code in _functions(module):
        if wanted and code.co_qualname.partition(".")[0] != wanted:
            continue
        first = code.co_firstlineno
        for _, _, line in code.co_lines():
            if line is not None and line != first:
                yield file, line


def _functions(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of functions; class bodies run on import."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & 0x2:  # CO_NEWLOCALS: a function, not the body of a class
                yield constant
            yield from _functions(constant)
