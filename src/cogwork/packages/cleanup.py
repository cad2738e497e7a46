"""Removes unused files: versions of packages, and leftovers of interrupted downloads.

Several servers of one user share the packages, so each records the directories that it uses.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from cogwork.core.files import atomic
from cogwork.packages.errors import PackageUnavailable
from cogwork.packages.slot import WORKING, PackageSlot

_MAX_PART_AGE: Final = 72 * 3600.0
"""Seconds after which an interrupted download is deleted instead of continued."""


class UsageFile:
    """The directories that the machine of one configuration file uses."""

    def __init__(self, store: Path, config_file: Path) -> None:
        name = hashlib.sha256(os.fsencode(config_file.absolute())).hexdigest()[:16]
        self._directory = store.parent / "users"
        self._path = self._directory / f"{name}.json"
        self._config_file = config_file.absolute()

    def write(self, directories: Collection[Path]) -> None:
        """Record the directories. Raise OSError."""
        if not directories and not self._path.exists():
            return
        content = {
            "file": str(self._config_file),
            "directories": sorted(map(str, directories)),
        }
        atomic.write(self._path, json.dumps(content, indent=2).encode())

    def read_all(self) -> frozenset[Path]:
        """Return the directories of all machines whose configuration file still exists."""
        found = set[Path]()
        for path in _list(self._directory):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                content = json.loads(path.read_bytes())
                if Path(content["file"]).exists():
                    found.update(map(Path, content["directories"]))
        return frozenset(found)


def find_unused(store: Path, used: Collection[Path]) -> list[PackageSlot]:
    """Return the packages that no machine uses, except directories that were made by hand."""
    return [
        slot
        for kind in _list(store)
        for each in _list(kind)
        if (slot := PackageSlot(each)).record.is_file() and each.is_dir() and each not in used
    ]


def remove_slots(slots: Iterable[PackageSlot]) -> list[Path]:
    """Remove packages. Return the removed directories."""
    gone = []
    for slot in slots:
        with contextlib.suppress(OSError, PackageUnavailable):
            slot.remove()
            gone.append(slot.directory)
    return gone


def remove_leftovers(store: Path, used: Collection[Path]) -> None:
    """Remove files that a crash left behind, except downloads that can be continued."""
    for kind in _list(store):
        for working in _list(kind / WORKING):
            with contextlib.suppress(OSError, PackageUnavailable):
                _remove_leftover(PackageSlot(kind / working.name), used)
        for record in kind.glob("*.status.json"):
            if not record.with_name(record.name.removesuffix(".status.json")).is_dir():
                record.unlink(missing_ok=True)


def _remove_leftover(slot: PackageSlot, used: Collection[Path]) -> None:
    with slot.lock():
        shutil.rmtree(slot.unpacked, ignore_errors=True)
        partial = slot.partial
        is_old = not partial.exists() or time.time() - partial.stat().st_mtime > _MAX_PART_AGE
        if slot.directory.is_dir() or (is_old and slot.directory not in used):
            slot.clear()


def _list(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []
