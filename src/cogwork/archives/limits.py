"""Limits of archives, and the errors that name them."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.archives.tar import BadArchive

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of one archive."""

    entries: int = 100_000
    directories: int = 20_000
    """Directories, including those that only the paths of other entries name."""
    links: int = 10_000
    """Symbolic links, which are kept in memory until everything else is created."""
    unpacked: int = 16 * _GIB
    """Bytes of all files together."""
    reserve: int = 256 << 20
    """Bytes that stay free on the disk."""
    path: int = 1024
    """Bytes of a path."""
    depth: int = 64
    """Components of a path."""
    ratio: int = 200
    """Unpacked bytes per byte of the archive."""
    ratio_from: int = 64 << 20
    """Unpacked bytes up to which any ratio is allowed: small files of zeros are common."""
    is_strict: bool = False
    """Whether absolute paths, a second entry of the same path and data after the end are refused,
    too. Otherwise, paths are relative to the directory, the second entry replaces the first, and
    the data is ignored."""


def check_count(count: int, limits: ArchiveLimits) -> None:
    if count > limits.entries:
        raise BadArchive(f"it has more than the limit of {limits.entries} entries")


def too_many_directories(limits: ArchiveLimits) -> BadArchive:
    return BadArchive(f"it has more than the limit of {limits.directories} directories")
