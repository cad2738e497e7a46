"""Free disk space for a new version, and the removal of old ones."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.agent.errors import DiskFull
from cogwork.agent.slots.layout import UNFINISHED, Layout
from cogwork.core.versions.product import Product

_RESERVE: Final = 200_000_000
"""Bytes that stay free for the machine."""
_DAY: Final = 24 * 3600.0
_MAX_AGE: Final = 30 * _DAY
_MAX_DOWNLOAD_AGE: Final = 7 * _DAY
"""Seconds after which an interrupted download is removed."""
_MAX_UNUSED_BYTES: Final = 4_000_000_000


@dataclass(frozen=True, slots=True)
class InstalledVersion:
    version: str
    installed_at: float
    """The time of the installation, in seconds since 1970."""
    size: int


def require_space(directory: Path, needed: int) -> None:
    """Raise DiskFull if the directory has less free space than `needed` plus a reserve."""
    free = shutil.disk_usage(directory).free
    if free < needed + _RESERVE:
        raise DiskFull(
            f"the version needs {_megabytes(needed + _RESERVE)} of free space, but the disk "
            f"of {directory} has {_megabytes(free)}; free some space, and the agent tries again"
        )


def choose_removals(
    installed: Sequence[InstalledVersion],
    used: Collection[str],
    now: float,
    max_age: float = _MAX_AGE,
    max_bytes: int = _MAX_UNUSED_BYTES,
) -> list[str]:
    """Return the unused versions that are too old or over the size limit, the oldest first."""
    unused = sorted(
        (each for each in installed if each.version not in used),
        key=lambda each: each.installed_at,
        reverse=True,
    )
    removals, kept_bytes = [], 0
    for each in unused:
        kept_bytes += each.size
        if now - each.installed_at > max_age or kept_bytes > max_bytes:
            removals.append(each.version)
    return removals[::-1]


def clean_up(layout: Layout, product: Product, used: Collection[str], now: float) -> list[str]:
    """Remove unused versions that are too old or over the size limit, and return them."""
    current = layout.current_version(product)
    kept = {*used, current} if current is not None else set(used)
    found = [
        _describe(layout.slot(product, version), version) for version in layout.installed(product)
    ]
    removals = choose_removals(found, kept, now)
    for version in removals:
        remove_slot(layout, layout.slot(product, version))
    return removals


def remove_slot(layout: Layout, slot: Path) -> None:
    """Remove a version. Rename it first, so that a crash leaves no incomplete version."""
    condemned = layout.versions / f"{UNFINISHED}{slot.name}"
    shutil.rmtree(condemned, ignore_errors=True)
    slot.replace(condemned)
    shutil.rmtree(condemned, ignore_errors=True)


def remove_unfinished(layout: Layout) -> None:
    """Remove the remains of an interrupted installation or removal."""
    if layout.versions.is_dir():
        for entry in layout.versions.iterdir():
            if entry.name.startswith(UNFINISHED):
                shutil.rmtree(entry, ignore_errors=True)


def remove_old_downloads(layout: Layout, now: float) -> None:
    """Remove interrupted downloads that were not continued."""
    if layout.downloads.is_dir():
        for entry in layout.downloads.iterdir():
            if now - entry.stat().st_mtime > _MAX_DOWNLOAD_AGE:
                entry.unlink()


def _describe(slot: Path, version: str) -> InstalledVersion:
    size = sum(each.lstat().st_size for each in slot.rglob("*") if not each.is_dir())
    return InstalledVersion(version, slot.stat().st_mtime, size)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
