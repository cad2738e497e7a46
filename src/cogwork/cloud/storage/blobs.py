"""The contents of packages: what an engine must offer to store them.

A blob is a sequence of bytes that never changes. It is named by its SHA-256 digest, so that the
same content is stored once, whoever uploads it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import IO, NamedTuple, Protocol

from cogwork.core.errors import CogworkError

UPLOAD_TIMEOUT = 60.0
"""Seconds within which the next chunk of an upload must arrive."""

Check = Callable[[IO[bytes], int], None]
"""Takes complete content, from its first byte, and its size. Raises to refuse it."""


class BlobsUnavailable(CogworkError):
    """The blobs cannot be read or written now."""

    status = "UNAVAILABLE"


class BlobTooLarge(CogworkError):
    """An upload is larger than the limit."""

    status = "RESOURCE_EXHAUSTED"


class UploadStalled(CogworkError):
    """The sender of an upload pauses for too long."""

    status = "DEADLINE_EXCEEDED"


class Blob(NamedTuple):
    digest: str
    """SHA-256, in hexadecimal."""
    size: int
    crc32c: int
    """The checksum that machines compare after a download."""


class Blobs(Protocol):
    async def write(self, chunks: AsyncIterator[bytes], limit: int, check: Check) -> Blob:
        """Store the content and return when it is on disk.

        The check runs in a thread. If it raises, if there are more bytes than the limit, or if the
        chunks end with an error or come too slowly, nothing is stored. Raises BlobTooLarge,
        UploadStalled, BlobsUnavailable, DiskLow, and what the check and the chunks raise.
        """

    def read(self, digest: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `end`, in chunks. Raises NotFound."""

    async def delete_unused(self, used: Callable[[str], bool], before: float) -> int:
        """Delete the blobs that are not used and were last written before a time.

        Writing content that is stored counts as well, so that an upload in progress keeps it. The
        time is in seconds since 1970. Return the number of deleted blobs.
        """

    async def aclose(self) -> None: ...
