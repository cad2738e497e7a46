"""Receives the archive of a package from the stream of a client."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import IO, Final

from cogwork.archives.checking import check
from cogwork.archives.decompression import decompress
from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.storage.blobs import Blob
from cogwork.core.errors import InvalidRequest
from cogwork.wire.table.handlers import Stream

MAX_SIZE: Final = 4 << 30
"""Maximum size of a package in bytes."""
_GZIP: Final = b"\x1f\x8b"


async def receive_archive(context: CloudContext, stream: Stream, field: str) -> Blob:
    """Store an archive, whose chunks are in a field of the messages after the first.

    Raise InvalidRequest, also for an archive that machines would refuse to unpack.
    """
    return await context.blobs.write(_read_chunks(stream, field), MAX_SIZE, _check_archive)


async def _read_chunks(stream: Stream, field: str) -> AsyncIterator[bytes]:
    while (message := await stream.recv_message()) is not None:
        if not message.HasField(field):
            raise InvalidRequest(f"only the first message describes the upload; then send {field}")
        yield getattr(message, field)


def _check_archive(file: IO[bytes], size: int) -> None:
    if file.read(2) != _GZIP:
        raise InvalidRequest("the package is not a .tar.gz archive; pack it with: tar -czf")
    file.seek(0)
    try:
        with decompress(file) as content:
            check(content.read, size, ArchiveLimits(is_strict=True))
    except (BadArchive, EOFError, OSError, zlib.error) as error:
        raise InvalidRequest(f"machines could not unpack the package: {error}") from None
