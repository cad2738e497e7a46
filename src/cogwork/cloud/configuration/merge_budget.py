"""Limits on the size of merged fragments, and on the work of merging them.

Both are counted instead of timed, so the same configuration always gives the same result.
"""

from __future__ import annotations

from typing import Any, Final

MAX_SIZE: Final = 4 << 20
"""Bytes that fragments may add to one configuration."""
MAX_STEPS: Final = 500_000
"""Maximum number of steps: values and items that are visited, but not added."""
MAX_NESTING: Final = 100
"""Maximum depth of nested objects and lists that messages to machines can carry."""
CHARACTERS_PER_STEP: Final = 64

_VALUE_SIZE: Final = 16
"""Bytes counted for a value in addition to its text, because small values take memory, too."""


class MergeTooLarge(Exception):
    """A limit is exceeded. The message continues a sentence that begins with `the fragments`."""


class MergeBudget:
    def __init__(self) -> None:
        self.size = 0
        """Bytes that were added."""
        self._steps = 0

    def add_value(self, value: Any) -> None:
        """Count an added value, but not its nested values. Raise MergeTooLarge."""
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
    """Raise MergeTooLarge if a value is nested too deeply."""
    if level > MAX_NESTING:
        raise MergeTooLarge(f"are more than {MAX_NESTING} levels deep")
