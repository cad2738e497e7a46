"""What a module says of itself: the meta.json in its folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.core.errors import CogworkError

_LARGEST = 1 << 20
"""Bytes that are read."""


class BadMeta(CogworkError):
    """A meta.json that says nothing of use."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Meta:
    file: Path
    _told: Any

    def named(self, key: str) -> Path | None:
        """The file in the module's folder that it names so. Raises BadMeta."""
        asked = self._told.get(key) if isinstance(self._told, dict) else None
        if not asked:
            return None
        folder = self.file.parent.resolve()
        found = (folder / str(asked)).resolve()
        if not isinstance(asked, str) or not found.is_relative_to(folder):
            raise BadMeta(
                f'"{key}" in {self.file} is {json.dumps(asked)}; it names a file beside it'
            )
        return found


def meta_in(folder: Path) -> Meta | None:
    """None: it has none. Raises BadMeta."""
    file = folder / "meta.json"
    if not file.is_file():
        return None
    try:
        with file.open(encoding="utf-8") as opened:
            return Meta(file, json.loads(opened.read(_LARGEST)))
    except (OSError, ValueError) as error:
        raise BadMeta(f"{file} cannot be read: {error}") from error
