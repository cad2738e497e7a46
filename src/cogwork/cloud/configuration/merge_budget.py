"""How much the fragments of one configuration may add to it, and how much work merging them may be.

Both are counted instead of timed, so the same configuration is always merged the same way.
"""

from __future__ import annotations

from typing import Any, Final

MAX_SIZE: Final = 4 << 20
"""Bytes that fragments may add to one configuration."""
MAX_STEPS: Final = 500_000
"""Values and list items that may be visited besides those that are added."""
MAX_NESTING: Final = 100
"""Objects and lists inside of each other. The messages to machines carry no more."""
CHARACTERS_PER_STEP: Final = 64

_VALUE_SIZE: Final = 16
"""Bytes of a value besides its text, because many small values take memory, too."""


class MergeTooLarge(Exception):
    """The text says which bound is exceeded, as the end of a sentence about fragments."""


class MergeBudget:
    def __init__(self) -> None:
        self.size = 0
        """Bytes that were added."""
        self._steps = 0

    def add_value(self, value: Any) -> None:
        """Count a value that is added, without those inside of it. Raise MergeTooLarge."""
        self.add_size(_VALUE_SIZE + (len(value) if isinstance(value, str) else 0))

    def add_size(self, size: int) -> None:
        self.size += size
        if self.size > MAX_SIZE:
            raise MergeTooLarge(f"add more than {MAX_SIZE >> 20} MiB to the configuration")

    def add_steps(self, count: int) -> None:
        self._steps += count
        if self._steps > MAX_STEPS:
            raise MergeTooLarge(f"take more than {MAX_STEPS:,} steps to merge")


def require_nesting(level: int) -> None:
    """Raise MergeTooLarge if a value is inside of too many others."""
    if level > MAX_NESTING:
        raise MergeTooLarge(f"are more than {MAX_NESTING} levels deep")
