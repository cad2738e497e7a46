"""Limits of archives."""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.archives.tar import BadArchive

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of one archive."""

    entries: int = 100_000
    directories: int = 20_000
    """Number of directories, including directories that only the paths of other entries name."""
    links: int = 10_000
    """Number of symbolic links, which stay in memory until all other entries are created."""
    unpacked: int = 16 * _GIB
    """Total size of all files in bytes."""
    reserve: int = 256 << 20
    """Bytes of disk space that must stay free."""
    path: int = 1024
    """Length of a path in bytes."""
    depth: int = 64
    """Number of components of a path."""
    ratio: int = 200
    """Compression ratio: unpacked bytes per byte of the archive."""
    ratio_from: int = 64 << 20
    """Unpacked bytes up to which any ratio is allowed, because small files of zeros are common."""
    is_strict: bool = False
    """Whether to refuse absolute paths, repeated entries and data after the end. If False, absolute
    paths are treated as relative, a repeated entry replaces the earlier one, and data after the end
    is ignored."""


def check_count(count: int, limits: ArchiveLimits) -> None:
    if count > limits.entries:
        raise BadArchive(f"the archive has more than the limit of {limits.entries} entries")


def too_many_directories(limits: ArchiveLimits) -> BadArchive:
    return BadArchive(f"the archive has more than the limit of {limits.directories} directories")
