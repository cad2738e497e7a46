"""The visibility of a fragment or a registry item outside of its organization."""

from __future__ import annotations

import enum


class Visibility(enum.IntEnum):
    """The visibility of a fragment or an item, with the numbers of the public API."""

    PRIVATE = 1
    PUBLIC = 2
    """Listed for everyone."""
    UNLISTED = 3
    """Usable by everyone who knows the ID, but not listed."""
