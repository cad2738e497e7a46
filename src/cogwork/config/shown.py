"""The text of a configuration as it may be shown: its lines, without secrets."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from cogwork.config.json_faults import JsonFault
from cogwork.config.positions import BYTE_ORDER_MARK, Position, Span
from cogwork.config.secrets import without_environment, without_secrets
from cogwork.config.substitute import Substituted
from cogwork.config.surroundings import Surroundings

_NEAR = 200
_NAMING = re.compile(r' (?:after the (?:key|value of)|for) ".*', re.DOTALL)
_TO_THE_NEXT = re.compile(r"(?:\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+[^\n]*")


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a text, with its line as it may be shown."""

    position: Position
    length: int
    line: str
    """What is near the place, if the line is very long."""
    skipped: int = 0
    """How much of the line is left out before that."""


class Shown:
    def __init__(self, substituted: Substituted, surroundings: Surroundings) -> None:
        self.original = substituted.original
        self.origin = substituted.origin
        self.scrub = without_environment(substituted.original, surroundings.environment)
        self._hidden: list[Span] = []

    def hide(self, spans: Iterable[Span]) -> None:
        """What else may not be shown, once the text is read; before the first spot is asked for."""
        self._hidden.extend(spans)

    def spot(self, span: Span) -> Spot:
        text, lines = self._text, self._lines
        number = bisect_right(lines, span.start)
        # No editor shows the mark, so it is in no column and no line.
        first = lines[number - 1] + (number == 1 and text.startswith(BYTE_ORDER_MARK))
        start = max(first, span.start)
        end = lines[number] - 1 if number < len(lines) else len(text)
        length = max(1, min(span.end, end) - start)
        near = max(first, start - _NEAR)
        line = text[near : min(end, start + _NEAR)]
        return Spot(Position(number, start - first + 1), length, line.rstrip("\r"), near - first)

    def words_of(self, fault: JsonFault, span: Span) -> tuple[str, str | None]:
        """The message and the hint; near a secret or a variable nothing of the text is in them."""
        if self._is_delicate_at(span):
            return _NAMING.sub("", fault.expected), None
        return fault.message, fault.hint

    def _is_delicate_at(self, span: Span) -> bool:
        """Whether a secret or a variable is where a fault is, or next to it."""
        start = self.original.rfind("\n", 0, span.start) + 1
        after = _TO_THE_NEXT.match(self.original, span.end)
        end = after.end() if after else span.end
        written = self.original[start:end]
        return "$" in written or written != self._text[start:end]

    @functools.cached_property
    def _text(self) -> str:
        return without_secrets(self.original, self._hidden)

    @functools.cached_property
    def _lines(self) -> list[int]:
        """Where each line starts: to count them anew for every fault would take seconds."""
        return [0, *(match.end() for match in re.finditer("\n", self._text))]
