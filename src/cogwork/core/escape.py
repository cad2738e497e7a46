"""Escape untrusted text for a line of a terminal, a log file or a JSON document."""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    # Control characters; direction marks, embeddings, overrides and isolates; line and paragraph
    # separators; halves of surrogate pairs, which cannot be encoded.
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

INDENT = "    "
"""Prefix of continuation lines. Log lines start with a time instead."""
TAB_WIDTH = 4


def escape(text: str) -> str:
    r"""Return the text as one line without control characters: a line break becomes `\n`."""
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def escape_lines(text: str) -> str:
    """Return the text with its line breaks, every line indented and otherwise escaped."""
    lines = text.expandtabs(TAB_WIDTH).split("\n")
    return "\n".join(f"{INDENT}{escape(line)}" for line in lines)


def escape_json(document: str) -> str:
    """Return the JSON document with unsafe characters escaped, including those that JSON allows.

    Line breaks are kept, because JSON has already escaped the line breaks in strings.
    """
    if _UNSAFE.search(document) is None:
        return document
    return _UNSAFE.sub(
        lambda found: found[0] if found[0] == "\n" else rf"\u{ord(found[0]):04x}", document
    )
