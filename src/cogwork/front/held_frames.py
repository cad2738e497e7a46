"""Holds back frames of a client, except the frames that may overtake them.

A held request delays all later requests of the connection, because each header block depends on the
previous one. Frames of running requests overtake a held request, so that the client can open the
windows for the replies that it waits for.
"""

from __future__ import annotations

from cogwork.front.http2_frames import (
    DATA,
    HEADER_SIZE,
    PING,
    RST_STREAM,
    WINDOW_UPDATE,
    read_header,
)

_OF_A_STREAM = (DATA, RST_STREAM, WINDOW_UPDATE)


class HeldFrames:
    def __init__(self, last_stream: int) -> None:
        """`last_stream` is the last stream that was forwarded to the server."""
        self._last_stream = last_stream
        self._kept = bytearray()
        self._partial = b""
        """The beginning of an incomplete frame header."""
        self._missing = 0
        """Number of bytes of the last frame that have not arrived yet."""
        self._goes_ahead = False
        """Whether the last frame is forwarded instead of held back."""

    @property
    def size(self) -> int:
        return len(self._kept)

    @property
    def is_within_frame(self) -> bool:
        """Whether the last frame was forwarded only in part."""
        return self._goes_ahead and self._missing > 0

    def feed(self, data: bytes) -> bytes:
        """Return the bytes to forward, and hold back all others."""
        ahead = bytearray()
        data, self._partial, at = self._partial + data, b"", 0
        while at < len(data):
            if not self._missing:
                if len(data) - at < HEADER_SIZE:
                    self._partial = data[at:]
                    break
                size, kind, stream = read_header(data, at)
                self._goes_ahead = self._may_go_ahead(kind, stream)
                self._missing = HEADER_SIZE + size
            part = data[at : at + self._missing]
            (ahead if self._goes_ahead else self._kept).extend(part)
            self._missing -= len(part)
            at += len(part)
        return bytes(ahead)

    def take(self) -> bytes:
        """Return and remove all bytes that were held back."""
        kept = bytes(self._kept) + self._partial
        self._kept.clear()
        self._partial = b""
        return kept

    def _may_go_ahead(self, kind: int, stream: int) -> bool:
        if kind == PING or (kind == WINDOW_UPDATE and stream == 0):
            return True
        return kind in _OF_A_STREAM and 0 < stream <= self._last_stream
