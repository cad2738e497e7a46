"""Unpack a file with an archive into a directory, and report how far it is."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path

from cogwork.archives.decompression import decompress
from cogwork.archives.extraction import ArchiveLimits, extract
from cogwork.archives.tar import Truncated

OnRead = Callable[[int], None]
"""Gets the bytes of the archive that have been read. An error that it raises ends the work."""


def unpack(
    archive: Path,
    directory: Path,
    on_read: OnRead,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Unpack an archive of any supported format.

    Raise BadArchive, Truncated if it is incomplete or not an archive at all, and OSError; the
    directory is then incomplete.
    """
    try:
        with _ProgressFile(archive, on_read) as file, decompress(file) as content:
            extract(content, archive.stat().st_size, directory, limits)
    except (EOFError, zlib.error, LZMAError) as error:
        raise Truncated("it is not an archive, or is incomplete") from error


class _ProgressFile(io.FileIO):
    """A file that reports its position before every read."""

    def __init__(self, file: Path, on_read: OnRead) -> None:
        super().__init__(file)
        self._on_read = on_read

    def read(self, size: int | None = -1) -> bytes:
        self._on_read(self.tell())
        return super().read(-1 if size is None else size) or b""
