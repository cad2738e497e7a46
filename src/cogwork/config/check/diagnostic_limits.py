"""Limits on diagnostics, so that a file with many faults does not fill the memory or the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

MAX_DIAGNOSTICS = 200
"""Maximum number of diagnostics per configuration. Further diagnostics are only counted."""
MAX_RELATED = 20
"""Related locations kept per diagnostic."""
MAX_MESSAGE_LENGTH = 4096
"""Characters in a message or a hint."""

T = TypeVar("T")


def keep_worst(found: Sequence[T], rank: Callable[[T], int]) -> list[T]:
    """Return the items with the lowest ranks, in their original order."""
    by_rank = sorted(range(len(found)), key=lambda index: rank(found[index]))
    return [found[index] for index in sorted(by_rank[:MAX_DIAGNOSTICS])]


def truncate_message(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[: MAX_MESSAGE_LENGTH - 1]}…"
