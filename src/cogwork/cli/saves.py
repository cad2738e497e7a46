"""What an author saves, noticed by looking."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cogwork.cli.authored import Module

_QUIET = 0.25
"""Seconds without a change after which whoever saves has finished."""
_SOURCES = frozenset(
    (
        *(".c", ".cc", ".cpp", ".go", ".h", ".hpp", ".js", ".mjs", ".py", ".rs", ".sh", ".ts"),
        *(".toml", ".yaml", ".yml"),
    )
)
"""What an author saves. What else appears there the module may have written itself."""
_NOT_LOOKED_INTO = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "target"})
_MOST_FILES = 10_000

Signature = tuple[int, int, int, int]
Seen = dict[Path, Signature]


@dataclass
class Looks:
    """Looks at the files instead of waiting for the system's word: the same for every way to save
    and every file system."""

    module: Module
    config: Path | None
    _seen: Seen = field(init=False)

    def __post_init__(self) -> None:
        self._seen = self._look()

    def saved(self) -> list[Path]:
        """What changed, appeared or went since the last time; when it has settled."""
        latest = self._look()
        if latest == self._seen:
            return []
        until = time.monotonic() + 8 * _QUIET
        while time.monotonic() < until:
            time.sleep(_QUIET)
            before, latest = latest, self._look()
            if latest == before:
                break
        seen, self._seen = self._seen, latest
        return sorted(p for p in seen.keys() | latest.keys() if seen.get(p) != latest.get(p))

    def _look(self) -> Seen:
        seen: Seen = {}
        for file in self._files():
            # Between two looks anything may go.
            with contextlib.suppress(OSError):
                seen[file] = _signature(file.stat())
            if len(seen) >= _MOST_FILES:
                break
        return seen

    def _files(self) -> Iterator[Path]:
        if self.config is not None:
            yield self.config
        for folder, inside, names in os.walk(self.module.root):
            inside[:] = [
                name
                for name in inside
                if self.module.whole_folder
                and not name.startswith(".")
                and name not in _NOT_LOOKED_INTO
            ]
            for name in names:
                file = Path(folder, name)
                if file != self.config and self._is_source(file):
                    yield file

    def _is_source(self, file: Path) -> bool:
        return not file.name.startswith(".") and (
            file.suffix in _SOURCES or file.name == "meta.json" or file == self.module.executable
        )


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
