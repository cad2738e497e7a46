"""A polling watcher for the source files of a module."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cogwork.cli.module.project import ModuleProject
from cogwork.config.text.file import file_signature
from cogwork.core.files.file_identity import FileIdentity

_DEBOUNCE = 0.25
"""Seconds without a change after which a save counts as complete."""
_SOURCE_SUFFIXES = frozenset(
    (
        *(".c", ".cc", ".cpp", ".go", ".h", ".hpp", ".js", ".mjs", ".py", ".rs", ".sh", ".ts"),
        *(".toml", ".yaml", ".yml"),
    )
)
"""Suffixes of source files. Other files are ignored, because the module itself may write them."""
_IGNORED_FOLDERS = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "target"})
_MAX_FILES = 10_000

Signatures = dict[Path, FileIdentity]


@dataclass
class PollingWatcher:
    """Finds changed files by polling, which works with every editor and file system."""

    module: ModuleProject
    config: Path | None
    _signatures: Signatures = field(init=False)

    def __post_init__(self) -> None:
        self._signatures = self._scan()

    def poll_changes(self) -> list[Path]:
        """Return the files changed, created or deleted since the last poll, debounced."""
        latest = self._scan()
        if latest == self._signatures:
            return []
        until = time.monotonic() + 8 * _DEBOUNCE
        while time.monotonic() < until:
            time.sleep(_DEBOUNCE)
            before, latest = latest, self._scan()
            if latest == before:
                break
        seen, self._signatures = self._signatures, latest
        return sorted(p for p in seen.keys() | latest.keys() if seen.get(p) != latest.get(p))

    def _scan(self) -> Signatures:
        seen: Signatures = {}
        for file in self._iter_files():
            # The file may have been deleted since it was listed.
            if (signature := file_signature(file)) is not None:
                seen[file] = signature
            if len(seen) >= _MAX_FILES:
                break
        return seen

    def _iter_files(self) -> Iterator[Path]:
        if self.config is not None:
            yield self.config
        for folder, inside, names in os.walk(self.module.root):
            inside[:] = [
                name
                for name in inside
                if self.module.includes_subfolders
                and not name.startswith(".")
                and name not in _IGNORED_FOLDERS
            ]
            for name in names:
                file = Path(folder, name)
                if file != self.config and self._is_source(file):
                    yield file

    def _is_source(self, file: Path) -> bool:
        return not file.name.startswith(".") and (
            file.suffix in _SOURCE_SUFFIXES
            or file.name == "meta.json"
            or file == self.module.executable
        )
