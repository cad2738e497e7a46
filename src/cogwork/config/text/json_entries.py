"""Find the entries of an object or a list in a JSON text, with their commas."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from cogwork.config.text.json_grammar import (
    COMMENT,
    SCALAR_RE,
    STRING,
    skip_whitespace,
    string_span,
)
from cogwork.config.text.positions import Span

_BRACKET_RE = re.compile(rf"(?:{STRING}|{COMMENT}|[^\[\]{{}}\"/])*+(?P<bracket>[\[\]{{}}])")


@dataclass(frozen=True, slots=True)
class Entry:
    """A member of an object or an item of a list."""

    key: str | int
    key_span: Span | None
    value_span: Span
    comma: int | None
    """The offset of the comma after the entry."""

    @property
    def start(self) -> int:
        return (self.key_span or self.value_span).start

    @property
    def end(self) -> int:
        return self.value_span.end


def list_entries(text: str, container: Span) -> list[Entry]:
    """Return the entries of an object or a list, including those with duplicate keys.

    The text must be one that `read_json` accepts.
    """
    is_object = text[container.start] == "{"
    entries: list[Entry] = []
    pos = skip_whitespace(text, container.start + 1)
    while pos < container.end - 1:
        key_span = string_span(text, pos) if is_object else None
        key = json.loads(text[slice(*key_span)]) if key_span else len(entries)
        value_start = pos
        if key_span is not None:
            value_start = skip_whitespace(text, skip_whitespace(text, key_span.end) + 1)
        end = _find_value_end(text, value_start)
        pos = skip_whitespace(text, end)
        comma = pos if text[pos] == "," else None
        entries.append(Entry(key, key_span, Span(value_start, end), comma))
        if comma is not None:
            pos = skip_whitespace(text, comma + 1)
    return entries


def _find_value_end(text: str, start: int) -> int:
    if text[start] not in "[{":
        match = SCALAR_RE.match(text, start)
        assert match is not None  # the text is valid
        return match.end()
    depth, pos = 0, start
    while True:
        match = _BRACKET_RE.match(text, pos)
        assert match is not None  # the brackets are balanced
        depth += 1 if match["bracket"] in "[{" else -1
        pos = match.end()
        if depth == 0:
            return pos
