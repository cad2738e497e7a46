"""A reader of decompressed data that enforces limits on its size and on the disk space."""

from __future__ import annotations

import os
from typing import Final

from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import CHUNK_SIZE, BadArchive, NoSpace, ReadBytes

_DISK_INTERVAL: Final = 256
"""Number of reads (at most 16 MiB) between two checks of the free disk space."""
_FREE_FILES: Final = 1000
"""Minimum number of further files for which the disk must have room."""


class MeteredReader:
    """A reader of decompressed data that enforces the limits on its size."""

    def __init__(
        self, read: ReadBytes, packed_size: int, limits: ArchiveLimits, root: int | None = None
    ) -> None:
        """`root` is the directory on the disk whose free space is checked."""
        self._read = read
        self._packed_size = packed_size
        self._limits = limits
        self._root = root
        self._free_space: int | None = None
        """Bytes that were free on the disk before unpacking."""
        self._reads = 0
        self._count = 0

    def read(self, size: int) -> bytes:
        if self._reads % _DISK_INTERVAL == 0 and self._root is not None:
            self._check_disk(self._root)
        self._reads += 1
        data = self._read(size)
        while len(data) < size and (more := self._read(size - len(data))):
            data += more
        self._count += len(data)
        self._check()
        return data

    def read_to_end(self) -> None:
        """Read the data after the archive, because the checksum of a compressed file is at its
        end."""
        while data := self.read(CHUNK_SIZE):
            if self._limits.is_strict and data.strip(b"\0"):
                raise BadArchive("the archive has data after its end; pack one archive per file")

    def _check(self) -> None:
        count, limits = self._count, self._limits
        if count > limits.unpacked:
            raise BadArchive(
                f"the archive unpacks to more than the limit of {_format_size(limits.unpacked)}"
            )
        if count > max(limits.ratio_from, limits.ratio * self._packed_size):
            raise BadArchive(
                f"the archive unpacks to more than {limits.ratio} times its size, like an archive "
                "that is meant to fill a disk; pack it without large files of zeros"
            )

    def _check_disk(self, root: int) -> None:
        """Check the free space of the disk, because small files take up more space than their
        size."""
        disk = os.statvfs(root)
        free = disk.f_bavail * disk.f_frsize - self._limits.reserve
        if self._free_space is None:
            self._free_space = free
        if free < 0:
            raise NoSpace(
                "the archive unpacks to more than the free disk space of "
                f"{_format_size(self._free_space)} (after a reserve of "
                f"{_format_size(self._limits.reserve)}); free some space"
            )
        # `f_files` is 0 if the file system does not limit the number of files.
        if disk.f_files and disk.f_favail < _FREE_FILES:
            raise NoSpace(f"the disk has room for fewer than {_FREE_FILES} more files; delete some")


def _format_size(count: int) -> str:
    return f"{max(0, count) / (1 << 30):.3g} GiB"
