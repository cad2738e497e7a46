"""Secrets that must not reach any output, whoever wrote them into a message."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHORTEST = 6
"""Shorter values are no secrets, and they occur in any sentence."""
STARS = "***"


class Mask:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        longest_first = sorted({each for each in secrets if len(each) >= SHORTEST}, key=len)[::-1]
        found = "|".join(map(re.escape, longest_first))
        self._pattern = re.compile(found) if found else None

    def hide(self, text: str) -> str:
        return self._pattern.sub(STARS, text) if self._pattern is not None else text
