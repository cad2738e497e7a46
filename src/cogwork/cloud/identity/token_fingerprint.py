"""The fingerprint that ties a token to a secret."""

from __future__ import annotations

import hashlib
from typing import Final

_LENGTH: Final = 16


def fingerprint_of(digest: str) -> str:
    """Return the fingerprint of a secret, given its digest."""
    return hashlib.sha256(digest.encode()).hexdigest()[:_LENGTH]
