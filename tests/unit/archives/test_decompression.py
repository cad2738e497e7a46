"""Decompression of files, detected by their first bytes."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable

import pytest

from cogwork.archives.decompression import decompress

CONTENT = bytes(range(256)) * 4096


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_decompress_returns_the_content(compress: Callable[[bytes], bytes]) -> None:
    with decompress(io.BytesIO(compress(CONTENT))) as content:
        assert content.read(10) == CONTENT[:10]
        assert content.read() == CONTENT[10:]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_parts_that_are_compressed_one_by_one_are_one_file(
    compress: Callable[[bytes], bytes],
) -> None:
    packed = b"".join(
        compress(CONTENT[at : at + 300_000]) for at in range(0, len(CONTENT), 300_000)
    )
    with decompress(io.BytesIO(packed)) as content:
        assert content.read() == CONTENT


def test_padding_between_xz_streams_is_skipped() -> None:
    packed = lzma.compress(b"a") + bytes(1 << 17) + lzma.compress(b"b") + bytes(8)
    assert decompress(io.BytesIO(packed)).read() == b"ab"


def test_xz_memory_is_limited() -> None:
    with pytest.raises(lzma.LZMAError, match=r"[Mm]emory"):
        decompress(io.BytesIO(_with_large_dictionary(lzma.compress(b"x")))).read()


def test_truncated_xz_raises() -> None:
    with pytest.raises(EOFError):
        decompress(io.BytesIO(lzma.compress(CONTENT)[:-20])).read()


def _with_large_dictionary(packed: bytes) -> bytes:
    """Set the dictionary size, the byte after length, flags, filter and count of the header."""
    start = 12
    length = (packed[start] + 1) * 4
    header = bytearray(packed[start : start + length - 4])
    header[4] = 38  # 2 GiB
    checksum = zlib.crc32(header).to_bytes(4, "little")
    return packed[:start] + bytes(header) + checksum + packed[start + length :]
