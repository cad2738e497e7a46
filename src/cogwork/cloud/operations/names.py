"""Validation of the names of organizations, locations, machines, parts and keys."""

from __future__ import annotations

import unicodedata
from typing import Final

from cogwork.core.errors import InvalidRequest

_MAX_LENGTH: Final = 100


def require_name(name: str) -> str:
    """Return the name without surrounding spaces. Raise InvalidRequest if it is not valid."""
    name = name.strip()
    if not 0 < len(name) <= _MAX_LENGTH:
        raise InvalidRequest(f"a name has 1 to {_MAX_LENGTH} characters; this one has {len(name)}")
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in name):
        raise InvalidRequest("a name cannot have control characters; remove them")
    return name
