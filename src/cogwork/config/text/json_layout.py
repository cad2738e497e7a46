"""The line breaks and the indentation of a JSON text, for edits that keep them."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from cogwork.config.text.positions import Json, Span

_INDENT_RE = re.compile(r"\n([ \t]+)[^\s]")
_SAME_LINE_COMMENTS_RE = re.compile(
    r"(?P<comments>(?:[ \t]*+/\*(?:[^*\r\n]|\*(?!/))*+\*/)*+(?:[ \t]*+//[^\r\n]*+)?)"
    r"[ \t]*+(?=[\r\n]|\Z)"
)
_DEFAULT_UNIT = "  "


class Deletion(NamedTuple):
    start: int
    end: int
    is_before_entry: bool
    """Whether another entry follows, so that the space before it is deleted, too."""


class JsonLayout:
    def __init__(self, text: str) -> None:
        self._text = text
        self.has_lines = "\n" in text.strip()
        self.line_break = "\r\n" if "\r\n" in text else "\n"
        found = _INDENT_RE.search(text)
        self.unit = found[1] if found else _DEFAULT_UNIT

    def begins_line(self, offset: int) -> bool:
        start = self.line_start(offset)
        return start > 0 and not self._text[start:offset].strip(" \t")

    def line_start(self, offset: int) -> int:
        return self._text.rfind("\n", 0, offset) + 1

    def indent_at(self, offset: int) -> str:
        """Return the indentation of a line."""
        start = self.line_start(offset)
        end = start
        while self._text[end : end + 1] in (" ", "\t"):
            end += 1
        return self._text[start:end]

    def skip_comments_of_line(self, offset: int) -> int:
        """Return the end of the comments that fill the rest of the line; `offset` if there are
        none, or something else is on the line."""
        match = _SAME_LINE_COMMENTS_RE.match(self._text, offset)
        return match.end("comments") if match else offset

    def format(self, value: Json, indent: str, *, over_lines: bool) -> str:
        """Return the value as JSON, with `indent` before every line but the first."""
        if not over_lines:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        lines = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=self.unit)
        return lines.replace("\n", self.line_break + indent)

    def tidy(self, deletion: Deletion) -> Span:
        """Extend a deletion, so that neither an empty line nor stray space remains."""
        text, (start, end, is_before_entry) = self._text, deletion
        left, right = start, end
        while text[left - 1 : left] in (" ", "\t"):
            left -= 1
        while text[right : right + 1] in (" ", "\t"):
            right += 1
        if text[right : right + 1] in ("]", "}"):
            return Span(left, end)
        if text[right : right + 1] not in ("", "\r", "\n"):
            return Span(start, right if is_before_entry else end)
        if left > 0 and text[left - 1] != "\n":
            return Span(left, right)
        return Span(
            left, right + 2 if text.startswith("\r\n", right) else min(right + 1, len(text))
        )
