"""Helpers for sentences in messages."""

from __future__ import annotations

from collections.abc import Sequence


def join_names(names: Sequence[object], most: int) -> str:
    """Return the first names, and the number of the remaining names."""
    shown, more = ", ".join(map(str, names[:most])), len(names) - most
    return f"{shown} and {more} more" if more > 0 else shown
