"""Splits a byte stream into HTTP/2 frames."""

from __future__ import annotations

import struct
from collections.abc import Iterator

DATA, HEADERS, RST_STREAM, SETTINGS, PING = 0x0, 0x1, 0x3, 0x4, 0x6
WINDOW_UPDATE, CONTINUATION = 0x8, 0x9
ACK = 0x1
END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
PREFACE_SIZE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
MAX_HEADERS_FRAME_SIZE = 1 << 17
"""Maximum bytes of a HEADERS or CONTINUATION frame."""
_WITH_HEADER_BLOCK = (HEADERS, CONTINUATION)
_MESSAGE_PREFIX_SIZE = 5
"""Bytes of the prefix of a gRPC message, which has a compression flag and the size."""
_HEADER = struct.Struct(">HBBBL")
HEADER_SIZE = _HEADER.size
_WINDOW = struct.Struct(">L")
WINDOW_UPDATE_SIZE = HEADER_SIZE + _WINDOW.size
_STREAM_ID_MASK = (1 << 31) - 1


class ProtocolViolation(Exception):
    """A client violated the protocol or a limit, so its connection must be closed."""


class FrameReader:
    """Splits chunks into frames. Between two chunks, it keeps only incomplete frame headers and
    header blocks."""

    def __init__(self, skip: int = 0) -> None:
        """`skip` is the number of bytes before the first frame."""
        self._skip = skip
        self.partial = b""
        """The beginning of a frame that `read` has not yielded yet."""

    @property
    def is_within_payload(self) -> bool:
        """Whether more bytes of the last frame's payload follow."""
        return self._skip > 0

    def read(self, data: memoryview) -> Iterator[tuple[int, int, int, int, int, bytes]]:
        """Yield offset, type, flags, stream, payload size and payload of each frame.

        The payload is complete for header blocks and window updates. For data that does not end its
        stream, it has only the first bytes. For all other frames, it is empty. The offset is
        negative if the frame began in an earlier chunk. A caller that stops early must pass the
        data again from the offset of the frame at which it stopped.
        """
        earlier = len(self.partial)
        if earlier:
            data = memoryview(self.partial + bytes(data))
            self.partial = b""
        at, end = self._skip, len(data)
        self._skip = 0
        while at + HEADER_SIZE <= end:
            high, low, kind, flags, stream = _HEADER.unpack_from(data, at)
            size = high << 8 | low
            following = at + HEADER_SIZE + size
            payload = b""
            if kind in _WITH_HEADER_BLOCK:
                if size > MAX_HEADERS_FRAME_SIZE:
                    raise ProtocolViolation("a header frame is too large")
                if following > end:
                    break
                payload = bytes(data[at + HEADER_SIZE : following])
            elif kind == DATA and not flags & END_STREAM:
                needed = at + HEADER_SIZE + min(size, _MESSAGE_PREFIX_SIZE + 1)
                if needed > end:
                    break
                payload = bytes(data[at + HEADER_SIZE : needed])
            elif kind == WINDOW_UPDATE:
                if following > end:
                    break
                payload = bytes(data[at + HEADER_SIZE : following])
            yield at - earlier, kind, flags, stream & _STREAM_ID_MASK, size, payload
            at = following
        if at < end:
            self.partial = bytes(data[at:])
        else:
            self._skip = at - end


class FirstMessage:
    """The progress of the first gRPC message of a stream."""

    __slots__ = ("_left", "_prefix", "last_active", "size")

    def __init__(self, now: float) -> None:
        self.last_active = now
        self.size = 0
        """The size of the message in bytes; 0 until it is known."""
        self._prefix = b""
        self._left = 0
        """The number of bytes that have not arrived; 0 until the size is known."""

    def feed(self, flags: int, size: int, payload: bytes, now: float) -> bool:
        """Process a DATA frame of `size` bytes, whose first bytes are `payload`. Return whether the
        message is complete."""
        if flags & PADDED and payload:
            size, payload = size - 1 - payload[0], payload[1:]
        if size <= 0:
            return False
        self.last_active = now
        if len(self._prefix) < _MESSAGE_PREFIX_SIZE:
            missing = _MESSAGE_PREFIX_SIZE - len(self._prefix)
            self._prefix += payload[: min(missing, size)]
            if len(self._prefix) < _MESSAGE_PREFIX_SIZE:
                return False
            self.size = int.from_bytes(self._prefix[1:], "big")
            self._left = self.size + missing
        self._left -= size
        return self._left <= 0


def read_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the size, the type and the stream of the frame that begins at this offset."""
    high, low, kind, _, stream = _HEADER.unpack_from(data, at)
    return high << 8 | low, kind, stream & _STREAM_ID_MASK


def read_increment(payload: bytes) -> int:
    """Return the increment of a window update in bytes; 0 if it is malformed."""
    return int(_WINDOW.unpack(payload)[0]) & _STREAM_ID_MASK if len(payload) == _WINDOW.size else 0


def encode_window_update(stream: int, increment: int) -> bytes:
    return _HEADER.pack(0, _WINDOW.size, WINDOW_UPDATE, 0, stream) + _WINDOW.pack(increment)


def strip_padding(flags: int, payload: bytes) -> bytes:
    """Return the payload of a HEADERS frame without padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED and payload:
        start, end = 1, end - payload[0]
    if flags & PRIORITY:
        start += 5
    return payload[start:end]
