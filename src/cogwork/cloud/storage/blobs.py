"""The interface of an engine for the contents of packages.

A blob is a sequence of bytes that never changes. Its name is its SHA-256 digest, so the same
content is stored only once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import IO, NamedTuple, Protocol

from cogwork.core.errors import CogworkError

UPLOAD_TIMEOUT = 60.0
"""Maximum seconds between two chunks of an upload."""

Check = Callable[[IO[bytes], int], None]
"""Function that checks the complete content of an upload. Its arguments are a file, positioned at
the beginning, and the size. It raises an error to refuse the content."""


class BlobsUnavailable(CogworkError):
    """The blobs cannot be read or written at the moment."""

    status = "UNAVAILABLE"


class BlobTooLarge(CogworkError):
    """An upload is larger than the limit."""

    status = "RESOURCE_EXHAUSTED"


class UploadStalled(CogworkError):
    """The sender of an upload has paused for too long."""

    status = "DEADLINE_EXCEEDED"


class Blob(NamedTuple):
    digest: str
    """The SHA-256 digest in hexadecimal."""
    size: int
    crc32c: int
    """The checksum that machines compare after a download."""


class Blobs(Protocol):
    async def write(self, chunks: AsyncIterator[bytes], limit: int, check: Check) -> Blob:
        """Store the content, and return when it is on disk.

        The check runs in a thread. Nothing is stored if the check raises, if the limit is exceeded,
        or if the chunks end with an error or arrive too slowly. Raise BlobTooLarge, UploadStalled,
        BlobsUnavailable, DiskLow, and any error of the check and the chunks.
        """

    def read(self, digest: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `end`, in chunks. Raise NotFound."""

    async def delete_unused(self, used: Callable[[str], bool], before: float) -> int:
        """Delete unused blobs that were last written before a time. Return their number.

        Writing content that already exists counts, too, so that an upload in progress is kept. The
        time is in seconds since 1970.
        """

    async def aclose(self) -> None: ...
