"""The metadata of a module: the meta.json in its folder."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.core.errors import CogworkError

_MAX_BYTES = 1 << 20


class BadMeta(CogworkError):
    """The meta.json of a module is invalid."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class Meta:
    file: Path
    _content: Any

    def resolve_file(self, key: str) -> Path | None:
        """Return the file that `key` names; None if the key is not set. Raise BadMeta."""
        value = self._content.get(key) if isinstance(self._content, dict) else None
        if not value:
            return None
        folder = self.file.parent.resolve()
        found = _resolve_path(folder, value)
        if found is None or not found.is_relative_to(folder):
            raise BadMeta(
                f'"{key}" in {self.file} is {json.dumps(value)}; it must name a file inside the '
                f"folder of {self.file.name}"
            )
        return found


def _resolve_path(folder: Path, value: object) -> Path | None:
    """Return the file in the folder; None if the value is not a valid path."""
    try:
        found = (folder / value).resolve() if isinstance(value, str) else None
    except (OSError, ValueError, RuntimeError):  # RuntimeError: a link loop, before Python 3.13
        return None
    return None if found is None or _is_link_loop(found) else found


def _is_link_loop(path: Path) -> bool:
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def read_meta(folder: Path) -> Meta | None:
    """Return the metadata; None if the folder has no meta.json. Raise BadMeta."""
    file = folder / "meta.json"
    if not file.is_file():
        return None
    try:
        with file.open(encoding="utf-8") as opened:
            return Meta(file, json.loads(opened.read(_MAX_BYTES)))
    except (OSError, ValueError, RecursionError) as error:
        raise BadMeta(f"{file} cannot be read: {error}") from error
