"""Limits the size of log messages, tracebacks and fields."""

from __future__ import annotations

from collections.abc import Callable

LIMIT = 32 << 10
"""Maximum size of a message, a traceback or all fields together, in bytes of UTF-8."""
NAME_LIMIT = 1 << 10
"""Maximum size of a logger name, a field name or a code location, in bytes of UTF-8."""
_MARGIN = 4 << 10
"""Characters redacted beyond the limit, so that truncation does not reveal a part of a secret."""
_MAX_CHARACTER_BYTES = 4
"""Maximum size of one character in bytes of UTF-8."""


def truncate(text: str, redact: Callable[[str], str] = str, limit: int = LIMIT) -> str:
    """Redact the text and truncate it at the limit. Append a mark with the size of the missing
    text.

    The cost depends on the limit, not on the length of the text.
    """
    head = text[: limit + _MARGIN]
    shown = redact(head)
    beyond = len(text) - len(head)
    if not beyond and len(shown) * _MAX_CHARACTER_BYTES <= limit:
        return shown
    kept = _cut_utf8(shown, limit)
    missing = len(shown) - len(kept) + beyond
    return f"{kept}… [cut {missing:,} characters]" if missing else shown


def _cut_utf8(text: str, limit: int) -> str:
    # A lone surrogate takes three bytes, like other characters of the basic plane.
    data = text[:limit].encode(errors="surrogatepass")
    if len(data) <= limit:
        return text[:limit]
    end = limit
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode(errors="surrogatepass")
