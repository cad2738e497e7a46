"""Who outside of its organization sees a fragment or an item of the registry."""

from __future__ import annotations

import enum


class Visibility(enum.IntEnum):
    """The numbers are those of the public API, where fragments and items have the same."""

    PRIVATE = 1
    PUBLIC = 2
    """Everyone finds it."""
    UNLISTED = 3
    """Everyone who knows its ID can use it; listings do not show it."""
