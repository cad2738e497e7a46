"""Decompress a file as a stream, with bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from typing import IO

_MAX_XZ_MEMORY = 256 << 20
"""Memory limit in bytes: `xz -9` needs 65 MiB, but a file may request 4 GiB."""
_CHUNK = 1 << 16


def decompress(file: IO[bytes]) -> IO[bytes]:
    """Return the decompressed content of the file. Detect the format from the first bytes."""
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return io.BufferedReader(gzip.GzipFile(fileobj=file), _CHUNK)
    if magic.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if magic.startswith(b"\xfd7zXZ"):
        return io.BufferedReader(_XzReader(file), _CHUNK)
    return file


class _XzReader(io.RawIOBase):
    """A reader of xz files with a memory limit, which the standard library's reader lacks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decompressor = _xz_decompressor()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = b""
        while not data:
            fresh = b""
            if self._decompressor.eof:
                fresh = self._find_stream()
                if not fresh:
                    break
                self._decompressor = _xz_decompressor()
            elif self._decompressor.needs_input:
                fresh = self._file.read(_CHUNK)
                if not fresh:
                    raise EOFError("the compressed file is incomplete")
            data = self._decompressor.decompress(fresh, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _find_stream(self) -> bytes:
        """Skip the padding before the next stream in the file, and return the stream's first
        bytes."""
        fresh = self._decompressor.unused_data.lstrip(b"\0")
        while not fresh and (more := self._file.read(_CHUNK)):
            fresh = more.lstrip(b"\0")
        return fresh


def _xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MAX_XZ_MEMORY)
