"""Monitors the frames of a relayed HTTP/2 connection, and detects protocol violations.

grpc.aio's whole server stops when a path is not UTF-8, and it waits forever for a request whose
message never arrives. The monitor catches both before they reach grpc. It parses frame headers, and
the payload of header blocks only.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass

from hpack.exceptions import HPACKError
from hpack.huffman_table import decode_huffman

DATA, HEADERS, RST_STREAM, WINDOW_UPDATE, CONTINUATION = 0x0, 0x1, 0x3, 0x8, 0x9
END_STREAM, END_HEADERS, PADDED, PRIORITY = 0x1, 0x4, 0x8, 0x20
_PREFACE_SIZE = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_FRAME_HEADER = struct.Struct(">HBBBL")
_STREAM_ID_MASK = (1 << 31) - 1
_NO_PAYLOAD = memoryview(b"")
_UNLIMITED = 1 << 30
_EMPTY_DATA = 0x100
"""A pseudo frame type, not part of HTTP/2: a DATA frame without payload."""
MAX_HEADERS_FRAME_SIZE = 1 << 16
"""Maximum bytes of a HEADERS or CONTINUATION frame."""


class ProtocolViolation(Exception):
    """A client broke a rule, so its connection must be closed."""


@dataclass(frozen=True, slots=True)
class MonitorLimits:
    header_block: int = 64 * 1024
    """Maximum bytes of the headers of one request."""
    continuations: int = 16
    """Maximum frames for the headers of one request."""
    control_frames: int = 1000
    """Maximum frames per second without payload: pings, settings, priorities, empty data."""
    window_updates: int = 30_000
    """Maximum window updates per second; a client that downloads sends many."""
    waiting: int = 64
    """Maximum streams that have sent headers but no message."""
    burst: float = 0.25
    """Seconds for which an unanswered request counts as part of a burst."""


class Http2Monitor:
    def __init__(
        self,
        clock: Callable[[], float],
        limits: MonitorLimits | None = None,
        burst_limit: Callable[[], int] = lambda: _UNLIMITED,
    ) -> None:
        """`clock` is monotonic, in seconds. `burst_limit` returns the maximum requests in a
        burst."""
        self._clock = clock
        self._burst_limit = burst_limit
        self._limits = limits or MonitorLimits()
        self.last_active = clock()
        """Time of the last request or reply."""
        self.request_count = 0
        """Requests so far."""
        self._waiting: dict[int, float] = {}
        """Streams that have sent only headers, with the time of the headers."""
        self._running: set[int] = set()
        """Streams with a request whose reply is incomplete."""
        self._is_held_back = False
        """Whether a request has arrived that may not be forwarded yet."""
        self._burst: dict[int, float] = {}
        """Recent unanswered requests and their times. Requests that the client cancelled count
        too, because they cost work as well."""
        self._client_frames = _FrameParser(
            self._on_client_frame, skip=_PREFACE_SIZE, may_open=self._may_open
        )
        self._server_frames = _FrameParser(self._on_server_frame)
        self._control_rate = _RateLimit(clock, self._limits.control_frames)
        self._update_rate = _RateLimit(clock, self._limits.window_updates)
        self._header_block = bytearray()
        self._header_frame_count = 0

    @property
    def is_busy(self) -> bool:
        return self._is_held_back or bool(self._running)

    @property
    def waiting_since(self) -> float | None:
        """Opening time of the stream that has waited longest for its message."""
        return next(iter(self._waiting.values()), None)

    @property
    def is_bursting(self) -> bool:
        return bool(self._burst)

    def feed_client(self, data: memoryview) -> int:
        """Return how many bytes may be forwarded; the caller must feed the rest again later.

        Raise ProtocolViolation if none of the data may be forwarded.
        """
        return self._client_frames.feed(data)

    def feed_server(self, data: memoryview) -> int:
        return self._server_frames.feed(data)

    def _may_open(self, stream: int) -> bool:
        if stream in self._running or stream in self._waiting:
            return True
        self._is_held_back = self._burst_size() >= self._burst_limit()
        return not self._is_held_back

    def _burst_size(self) -> int:
        oldest = self._clock() - self._limits.burst
        while self._burst and next(iter(self._burst.values())) <= oldest:
            del self._burst[next(iter(self._burst))]
        return len(self._burst)

    def _on_client_frame(self, kind: int, flags: int, stream: int, payload: memoryview) -> None:
        if kind == DATA:
            self._mark_running(stream)
        elif kind == HEADERS:
            self._open_stream(stream, ended=bool(flags & END_STREAM))
            self._add_headers(_header_block_fragment(flags, payload), flags)
        elif kind == CONTINUATION:
            self._add_headers(bytes(payload), flags)
        elif kind == RST_STREAM:
            self._close_stream(stream)
        elif kind == WINDOW_UPDATE:
            self._update_rate.count()
        else:
            self._control_rate.count()

    def _on_server_frame(self, kind: int, flags: int, stream: int, _: memoryview) -> None:
        if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
            self.last_active = self._clock()
            self._burst.pop(stream, None)
            self._close_stream(stream)
        elif kind == HEADERS:
            self._mark_running(stream)

    def _open_stream(self, stream: int, *, ended: bool) -> None:
        if stream in self._running or stream in self._waiting:
            return  # trailers
        self.request_count += 1
        self.last_active = self._burst[stream] = self._clock()
        if ended:
            self._running.add(stream)
            return
        self._waiting[stream] = self.last_active

    def _mark_running(self, stream: int) -> None:
        if self._waiting.pop(stream, None) is not None:
            self._running.add(stream)

    def _close_stream(self, stream: int) -> None:
        self._waiting.pop(stream, None)
        self._running.discard(stream)

    def _add_headers(self, fragment: bytes, flags: int) -> None:
        self._header_frame_count += 1
        if flags & END_HEADERS and not self._header_block:
            block = fragment
        else:
            self._header_block += fragment
            block = bytes(self._header_block) if flags & END_HEADERS else b""
        if (
            len(self._header_block) > self._limits.header_block
            or self._header_frame_count > self._limits.continuations
        ):
            raise ProtocolViolation("the headers of a request are too large")
        if flags & END_HEADERS:
            self._header_block.clear()
            self._header_frame_count = 0
            if not has_utf8_headers(block):
                raise ProtocolViolation("a header is not valid UTF-8")
            if len(self._waiting) > self._limits.waiting:
                raise ProtocolViolation(
                    f"{len(self._waiting)} requests have sent headers but no message"
                )


class _RateLimit:
    """A limit on events per second that costs one addition per event."""

    __slots__ = ("_clock", "_count", "_limit", "_since")

    def __init__(self, clock: Callable[[], float], limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._count = 0
        self._since = clock()

    def count(self) -> None:
        """Count one event. Raise ProtocolViolation if there are too many."""
        self._count += 1
        if self._count > self._limit:
            now = self._clock()
            if now - self._since < 1.0:
                raise ProtocolViolation(f"more than {self._limit} frames per second carry no data")
            self._count, self._since = 0, now


class _FrameParser:
    """Splits a byte stream into frames. Only header frames are buffered until complete."""

    def __init__(
        self,
        on_frame: Callable[[int, int, int, memoryview], None],
        skip: int = 0,
        may_open: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """`may_open` decides, given the stream, whether a HEADERS frame may be consumed now."""
        self._on_frame = on_frame
        self._may_open = may_open
        self._skip = skip
        self._partial_header = b""
        """The first bytes of an incomplete frame header."""
        self._partial_frame: tuple[int, int, int, int, bytearray] | None = None
        """A frame with an incomplete payload: size, type, flags, stream and payload so far."""

    def feed(self, data: memoryview) -> int:
        """Return how many bytes were consumed."""
        at, end = 0, len(data)
        if self._skip:
            at = min(self._skip, end)
            self._skip -= at
        if self._partial_frame is not None:
            at = self._complete_frame(data, at)
        while at < end:
            if self._partial_header or end - at < _FRAME_HEADER.size:
                at = self._complete_header(data, at)
                if len(self._partial_header) < _FRAME_HEADER.size:
                    return end
                high, low, kind, flags, stream = _FRAME_HEADER.unpack(self._partial_header)
                self._partial_header = b""
            else:
                high, low, kind, flags, stream = _FRAME_HEADER.unpack_from(data, at)
                if kind == HEADERS and not self._may_open(stream & _STREAM_ID_MASK):
                    return at
                at += _FRAME_HEADER.size
            size = high << 8 | low
            if kind != HEADERS and kind != CONTINUATION:
                if kind == DATA and not size and not flags & END_STREAM:
                    kind = _EMPTY_DATA
                self._on_frame(kind, flags, stream & _STREAM_ID_MASK, _NO_PAYLOAD)
            elif size > MAX_HEADERS_FRAME_SIZE:
                raise ProtocolViolation("a header frame is too large")
            elif end - at < size:
                self._partial_frame = (
                    size,
                    kind,
                    flags,
                    stream & _STREAM_ID_MASK,
                    bytearray(data[at:]),
                )
                return end
            else:
                self._on_frame(kind, flags, stream & _STREAM_ID_MASK, data[at : at + size])
            at += size
        self._skip += at - end
        return end

    def _complete_header(self, data: memoryview, at: int) -> int:
        missing = _FRAME_HEADER.size - len(self._partial_header)
        self._partial_header += bytes(data[at : at + missing])
        return min(at + missing, len(data))

    def _complete_frame(self, data: memoryview, at: int) -> int:
        assert self._partial_frame is not None
        size, kind, flags, stream, payload = self._partial_frame
        missing = size - len(payload)
        payload += data[at : at + missing]
        if len(payload) == size:
            self._partial_frame = None
            self._on_frame(kind, flags, stream, memoryview(payload))
        return min(at + missing, len(data))


def _header_block_fragment(flags: int, payload: memoryview) -> bytes:
    """Return a HEADERS frame's payload without padding and priority."""
    start, end = 0, len(payload)
    if flags & PADDED and payload:
        start, end = 1, end - payload[0]
    if flags & PRIORITY:
        start += 5
    return bytes(payload[start:end])


def has_utf8_headers(block: bytes) -> bool:
    """Return whether all literal strings in an HPACK header block are valid UTF-8.

    Indexed fields need no check, because they refer to literals that were checked before. A
    malformed block counts as invalid.
    """
    return (
        _has_utf8_headers_cached(block)
        if len(block) <= _MAX_CACHED_BLOCK
        else _has_utf8_headers(block)
    )


_MAX_CACHED_BLOCK = 256


@functools.lru_cache(maxsize=1024)
def _has_utf8_headers_cached(block: bytes) -> bool:
    """Cached, because most calls on a connection have the same headers as the one before."""
    return _has_utf8_headers(block)


def _has_utf8_headers(block: bytes) -> bool:
    at, end = 0, len(block)
    try:
        while at < end:
            first = block[at]
            if first & 0x80:
                at = _decode_integer(block, at, 7)[1]
            elif first & 0xE0 == 0x20:
                at = _decode_integer(block, at, 5)[1]
            else:
                name, at = _decode_integer(block, at, 6 if first & 0x40 else 4)
                if name == 0:
                    at = _check_string(block, at)
                at = _check_string(block, at)
    except (IndexError, ValueError, HPACKError):
        return False
    return at == end


def _check_string(block: bytes, at: int) -> int:
    """Return the offset after the string. Raise ValueError if it is not valid UTF-8."""
    is_huffman = block[at] & 0x80
    size, at = _decode_integer(block, at, 7)
    text = block[at : at + size]
    if len(text) < size:
        raise ValueError("the string is truncated")
    if is_huffman:
        if _may_be_binary(text):
            decode_huffman(text).decode()
    elif not text.isascii():
        text.decode()
    return at + size


def _may_be_binary(coded: bytes) -> bool:
    """Return whether a Huffman string has 13 consecutive one bits.

    The codes of all bytes above 0x7F contain them, so a string without them is ASCII.
    """
    bits = int.from_bytes(coded, "big")
    bits &= bits >> 1
    bits &= bits >> 2
    bits &= bits >> 4
    return bool(bits & bits >> 5)


def _decode_integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    prefix_max = (1 << bits) - 1
    value = block[at] & prefix_max
    at += 1
    if value < prefix_max:
        return value, at
    for shift in range(0, 28, 7):
        byte = block[at]
        at += 1
        value += (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("the integer is too large")
