"""The edit of a configuration that resolves a diagnostic without changing what runs."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from cogwork.config.text.positions import Pointer


class FixKind(enum.Enum):
    REMOVE = enum.auto()
    """Remove the key or the list item."""
    RENAME = enum.auto()
    """Replace the key by `text`, and keep its value."""
    REPLACE = enum.auto()
    """Replace the value by `text`, which is JSON."""


@dataclass(frozen=True, slots=True)
class Fix:
    kind: FixKind
    pointer: Pointer
    text: str = ""
