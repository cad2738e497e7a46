"""Monitors the frames of a relayed HTTP/2 connection, and detects protocol violations.

grpc.aio's whole server stops when a path is not UTF-8, and it waits forever for a request whose
message never arrives. The monitor catches both before they reach grpc. It parses frame headers, and
the payload of header blocks only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cogwork.front.burst import Burst
from cogwork.front.control_frames import ControlFrames
from cogwork.front.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE_SIZE,
    RST_STREAM,
    WINDOW_UPDATE,
    FirstMessage,
    FrameReader,
    ProtocolViolation,
    strip_padding,
)
from cogwork.front.http2_headers import has_utf8_headers
from cogwork.front.rate_limit import RateLimit

_UNLIMITED = 1 << 30
_MAY_END_STREAM = (DATA, HEADERS)


@dataclass(frozen=True, slots=True)
class MonitorLimits:
    header_block: int = 128 * 1024
    """Maximum bytes of the headers of one request. gRPC refuses fewer, without closing the
    connection."""
    continuations: int = 16
    """Maximum frames for the headers of one request."""
    control_frames: int = 1000
    """Maximum frames per second without payload, but for those that are free: `ControlFrames`."""
    window_updates: int = 30_000
    """Maximum window updates per second; a client that downloads sends many."""
    waiting: int = 64
    """Maximum streams that have sent headers but no data."""
    incomplete: int = 256
    """Maximum streams whose first message is incomplete."""


class Http2Monitor:
    def __init__(
        self,
        clock: Callable[[], float],
        limits: MonitorLimits | None = None,
        burst: Burst | None = None,
    ) -> None:
        """`clock` is monotonic, in seconds. Without a `burst`, requests are not held back."""
        self._clock = clock
        self._limits = limits or MonitorLimits()
        self._burst = burst or Burst(lambda: _UNLIMITED)
        self.last_active = clock()
        """Time of the last request or reply."""
        self.request_count = 0
        """Requests so far."""
        self._waiting: dict[int, float] = {}
        """Streams that have sent only headers, with the time of the headers."""
        self._incomplete: dict[int, FirstMessage] = {}
        """Streams whose first message has begun."""
        self._running: set[int] = set()
        """Streams with a request whose reply is incomplete."""
        self._is_held_back = False
        """Whether a request has arrived that may not be forwarded yet."""
        self._has_exceeded_burst = False
        """Whether a request was forwarded although the burst was full."""
        self._client_frames = FrameReader(skip=PREFACE_SIZE)
        self._server_frames = FrameReader()
        self._control_frames = ControlFrames(self._limits.control_frames, self.last_active)
        self._update_rate = RateLimit(self._limits.window_updates, self.last_active)
        self._header_block = bytearray()
        self._header_frame_count = 0

    @property
    def is_busy(self) -> bool:
        return self._is_held_back or bool(self._running)

    @property
    def waiting_since(self) -> float | None:
        """Time of the last progress of the stream that has waited longest for its message."""
        first = next(iter(self._waiting.values()), None)
        times = [first] if first is not None else []
        return min(times + [each.last_active for each in self._incomplete.values()], default=None)

    def feed_client(self, data: memoryview) -> int:
        """Return how many bytes may be forwarded; the caller must feed the rest again later.

        Raise ProtocolViolation if none of the data may be forwarded.
        """
        now = self._clock()
        if self._is_held_back or self._has_exceeded_burst:
            self._is_held_back = self._burst.is_full(now)
            if self._is_held_back:
                return 0
            self._has_exceeded_burst = False
        waiting, running = self._waiting, self._running
        for offset, kind, flags, stream, size, payload in self._client_frames.read(data):
            if kind == DATA and (size or flags & END_STREAM):
                if flags & END_STREAM and waiting.pop(stream, None) is not None:
                    running.add(stream)  # most calls: the whole message in one frame
                elif stream not in running:
                    self._add_data(stream, flags, size, payload, now)
            elif kind == HEADERS:
                if not self._is_open(stream):  # otherwise trailers
                    if self._burst.is_full(now):
                        if offset >= 0:
                            self._is_held_back = True
                            return offset
                        # The first bytes of the frame were forwarded with the previous chunk.
                        self._has_exceeded_burst = True
                    self._open_stream(stream, now, ended=bool(flags & END_STREAM))
                self._add_headers(strip_padding(flags, payload), flags)
            elif kind == CONTINUATION:
                self._add_headers(payload, flags)
            elif kind == RST_STREAM:
                self._burst.cancel(stream, now)
                self._close_stream(stream)
            elif kind == WINDOW_UPDATE:
                self._update_rate.count(now)
            else:  # pings, settings, priorities, empty data
                self._control_frames.on_client_frame(kind, flags, now)
        return len(data)

    def feed_server(self, data: memoryview) -> int:
        for _, kind, flags, stream, _, _ in self._server_frames.read(data):
            self._control_frames.on_server_frame(kind, flags)
            if kind == RST_STREAM or (flags & END_STREAM and kind in _MAY_END_STREAM):
                self.last_active = self._clock()
                self._burst.end(stream)
                self._close_stream(stream)
            elif kind == HEADERS and stream not in self._running and self._is_open(stream):
                self._mark_running(stream)
        return len(data)

    def _open_stream(self, stream: int, now: float, *, ended: bool) -> None:
        self.request_count += 1
        self.last_active = now
        self._burst.begin(stream, now)
        if ended:
            self._running.add(stream)
        else:
            self._waiting[stream] = now

    def _is_open(self, stream: int) -> bool:
        return stream in self._running or stream in self._waiting or stream in self._incomplete

    def _add_data(self, stream: int, flags: int, size: int, payload: bytes, now: float) -> None:
        """Take data of a stream whose first message was not complete before."""
        if not self._is_open(stream):
            return
        if flags & END_STREAM:
            self._mark_running(stream)
            return
        message = self._incomplete.get(stream) or FirstMessage(now)
        if message.feed(flags, size, payload, now):
            self._mark_running(stream)
            return
        self._waiting.pop(stream, None)
        self._incomplete[stream] = message
        if len(self._incomplete) > self._limits.incomplete:
            raise ProtocolViolation(f"{len(self._incomplete)} requests sent incomplete messages")

    def _mark_running(self, stream: int) -> None:
        self._close_stream(stream)
        self._running.add(stream)

    def _close_stream(self, stream: int) -> None:
        self._waiting.pop(stream, None)
        self._incomplete.pop(stream, None)
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
