"""Splits a byte stream into HTTP/2 frames."""

from __future__ import annotations

import struct
from collections.abc import Iterator

DATA, HEADERS, RST_STREAM, WINDOW_UPDATE, CONTINUATION = 0x0, 0x1, 0x3, 0x8, 0x9
END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
PREFACE_SIZE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
MAX_HEADERS_FRAME_SIZE = 1 << 16
"""Maximum bytes of a HEADERS or CONTINUATION frame."""
_WITH_HEADER_BLOCK = (HEADERS, CONTINUATION)
_HEADER = struct.Struct(">HBBBL")
_HEADER_SIZE = _HEADER.size
_STREAM_ID_MASK = (1 << 31) - 1


class ProtocolViolation(Exception):
    """A client broke a rule, so its connection must be closed."""


class FrameReader:
    """Keeps only incomplete frame headers and incomplete header blocks between two chunks."""

    def __init__(self, skip: int = 0) -> None:
        """`skip` is the number of bytes before the first frame."""
        self._skip = skip
        self._partial = b""

    def read(self, data: memoryview) -> Iterator[tuple[int, int, int, int, int, bytes]]:
        """Yield offset, type, flags, stream, payload size and header block of each frame.

        The offset is negative if the frame began in an earlier chunk. A caller that stops early
        must pass the data again from the offset of the frame at which it stopped.
        """
        earlier = len(self._partial)
        if earlier:
            data = memoryview(self._partial + bytes(data))
            self._partial = b""
        at, end = self._skip, len(data)
        self._skip = 0
        while at + _HEADER_SIZE <= end:
            high, low, kind, flags, stream = _HEADER.unpack_from(data, at)
            size = high << 8 | low
            following = at + _HEADER_SIZE + size
            block = b""
            if kind in _WITH_HEADER_BLOCK:
                if size > MAX_HEADERS_FRAME_SIZE:
                    raise ProtocolViolation("a header frame is too large")
                if following > end:
                    break
                block = bytes(data[at + _HEADER_SIZE : following])
            yield at - earlier, kind, flags, stream & _STREAM_ID_MASK, size, block
            at = following
        if at < end:
            self._partial = bytes(data[at:])
        else:
            self._skip = at - end


def strip_padding(flags: int, payload: bytes) -> bytes:
    """Return the payload of a HEADERS frame without padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED and payload:
        start, end = 1, end - payload[0]
    if flags & PRIORITY:
        start += 5
    return payload[start:end]
