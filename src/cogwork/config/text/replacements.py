"""Replace parts of a text, and find the place in the old text for a place in the new one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cogwork.config.text.positions import Span


class Replacement(NamedTuple):
    span: Span
    text: str


def replace_spans(text: str, replacements: Sequence[Replacement]) -> str:
    """Apply replacements that are sorted and do not overlap."""
    parts: list[str] = []
    done = 0
    for span, inserted in replacements:
        parts += text[done : span.start], inserted
        done = span.end
    return "".join((*parts, text[done:]))


def original_offset(replacements: Sequence[Replacement], offset: int) -> int:
    """Return the offset in the text before the replacements; their start for inserted text."""
    shift = 0
    for span, inserted in replacements:
        start = span.start + shift
        if offset < start:
            break
        if offset < start + len(inserted):
            return span.start
        shift += len(inserted) - (span.end - span.start)
    return offset - shift
