"""The text of a configuration with its secrets masked, for excerpts in messages."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from cogwork.config.check.load_context import LoadContext
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.positions import BYTE_ORDER_MARK, Position, Span
from cogwork.config.text.secrets import environment_scrubber, mask_secrets
from cogwork.config.text.substitution import SubstitutedText

_CONTEXT_LENGTH = 200
_QUOTED_NAME = re.compile(r' (?:after the (?:key|value of)|for) ".*', re.DOTALL)
_UP_TO_NEXT_TOKEN = re.compile(r"(?:\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+[^\n]*")


@dataclass(frozen=True, slots=True)
class SourceExcerpt:
    """A position in a text, and its line with secrets masked."""

    position: Position
    length: int
    line: str
    """The line, or the part near the position if the line is very long."""
    skipped: int = 0
    """Characters omitted at the start of the line."""


class RedactedText:
    def __init__(self, substituted: SubstitutedText, context: LoadContext) -> None:
        self.original = substituted.original
        self.original_span = substituted.original_span
        self.scrub = environment_scrubber(substituted.original, context.environment)
        self._hidden_spans: list[Span] = []
        self._hides_lines = False

    def hide_lines(self) -> None:
        """Hide all lines. Call this if it is unknown which lines contain secrets."""
        self._hides_lines = True

    def hide(self, spans: Iterable[Span]) -> None:
        """Mask further spans. Call this before the first excerpt."""
        self._hidden_spans.extend(spans)

    def excerpt(self, span: Span) -> SourceExcerpt:
        text, lines = self._text, self._line_starts
        number = bisect_right(lines, span.start)
        # Editors do not show the byte order mark, so it is not part of the line.
        first = lines[number - 1] + (number == 1 and text.startswith(BYTE_ORDER_MARK))
        start = max(first, span.start)
        end = lines[number] - 1 if number < len(lines) else len(text)
        length = max(1, min(span.end, end) - start)
        if self._hides_lines:
            return SourceExcerpt(Position(number, start - first + 1), 1, "", start - first)
        near = max(first, start - _CONTEXT_LENGTH)
        line = text[near : min(end, start + _CONTEXT_LENGTH)]
        return SourceExcerpt(
            Position(number, start - first + 1), length, line.rstrip("\r"), near - first
        )

    def describe_error(self, fault: JsonSyntaxError, span: Span) -> tuple[str, str | None]:
        """Return the message and the hint. Do not quote the text near a secret or a variable."""
        if self._is_sensitive_at(span):
            return _QUOTED_NAME.sub("", fault.expected), None
        return fault.message, fault.hint

    def _is_sensitive_at(self, span: Span) -> bool:
        """Whether the fault is located at a secret or a variable, or next to one."""
        start = self.original.rfind("\n", 0, span.start) + 1
        after = _UP_TO_NEXT_TOKEN.match(self.original, span.end)
        end = after.end() if after else span.end
        written = self.original[start:end]
        return "$" in written or written != self._text[start:end]

    @functools.cached_property
    def _text(self) -> str:
        return mask_secrets(self.original, self._hidden_spans)

    @functools.cached_property
    def _line_starts(self) -> list[int]:
        """The offsets of the lines. Cached: counting lines for every fault would take seconds."""
        return [0, *(match.end() for match in re.finditer("\n", self._text))]
