"""Unpack an archive file of any supported format into a directory, and report the progress."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from lzma import LZMAError
from pathlib import Path
from typing import Final

from cogwork.archives.decompression import decompress
from cogwork.archives.extraction import extract
from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive, Truncated

OnRead = Callable[[int], None]
"""Callback with the number of bytes read from the archive. An error that it raises ends the
unpacking."""

_UNSUPPORTED: Final = {
    b"PK\x03\x04": "a zip file",
    b"7z\xbc\xaf": "a 7z file",
    b"Rar!": "a rar file",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
"""The first bytes of files in formats that are not supported."""


def unpack(
    archive: Path,
    directory: Path,
    on_read: OnRead,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Unpack an archive of any supported format.

    Raise Truncated if the archive is incomplete or not an archive at all, and BadArchive or OSError
    for other faults. The directory is then incomplete.
    """
    try:
        with _ProgressFile(archive, on_read) as file:
            _check_format(file)
            with decompress(file) as content:

                def read(size: int) -> bytes:
                    # Report every read of content, too: a few bytes of the file may contain many
                    # entries.
                    on_read(file.tell())
                    return content.read(size)

                extract(read, archive.stat().st_size, directory, limits)
    except (EOFError, zlib.error, LZMAError) as error:
        raise Truncated("the file is not an archive, or is incomplete") from error
    except OSError as error:
        # gzip and bz2 report damage as an OSError without a number; errors of the disk have one.
        if error.errno is not None:
            raise
        raise Truncated(f"the archive is damaged: {error}") from error


def _check_format(file: io.FileIO) -> None:
    magic = file.read(4)
    file.seek(0)
    if found := _UNSUPPORTED.get(magic):
        raise BadArchive(f"the file is {found}, which is not supported; pack it with: tar -czf")


class _ProgressFile(io.FileIO):
    """A file that reports its position before every read."""

    def __init__(self, file: Path, on_read: OnRead) -> None:
        super().__init__(file)
        self._on_read = on_read

    def read(self, size: int | None = -1) -> bytes:
        self._on_read(self.tell())
        return super().read(-1 if size is None else size) or b""
