"""Monitors the frames of a relayed HTTP/2 connection, and detects protocol violations.

grpc.aio's whole server stops when a path is not UTF-8, and it waits forever for a request whose
message never arrives. The monitor catches both before they reach grpc. It parses frame headers, and
the payload of header blocks only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cogwork.core.limits.byte_budget import ByteBudget
from cogwork.front.burst import Burst
from cogwork.front.control_frames import ControlFrames
from cogwork.front.held_frames import HeldFrames
from cogwork.front.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE_SIZE,
    RST_STREAM,
    WINDOW_UPDATE,
    WINDOW_UPDATE_SIZE,
    FirstMessage,
    FrameReader,
    ProtocolViolation,
    encode_window_update,
    read_increment,
    strip_padding,
)
from cogwork.front.http2_headers import has_utf8_headers
from cogwork.front.rate_limit import RateLimit
from cogwork.front.uploads import ConnectionUploads, Uploads

_UNLIMITED = 1 << 30
_MAY_END_STREAM = (DATA, HEADERS)


@dataclass(frozen=True, slots=True)
class MonitorLimits:
    header_block: int = 128 * 1024
    """Maximum bytes of the headers of one request. gRPC has a lower limit, but if a client exceeds
    that, gRPC keeps the connection open."""
    continuations: int = 16
    """Maximum frames for the headers of one request."""
    control_frames: int = 1000
    """Maximum frames without payload per second, except those that `ControlFrames` does not
    count."""
    window_updates: int = 30_000
    """Maximum window updates per second. A client that downloads sends many."""
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
        uploads: ConnectionUploads | None = None,
    ) -> None:
        """Create a monitor with a monotonic `clock`, in seconds.

        Without a `burst`, requests are not held back. Without `uploads`, the memory of requests is
        not limited.
        """
        self._clock = clock
        self._limits = limits or MonitorLimits()
        self._burst = burst or Burst(lambda: _UNLIMITED)
        self._uploads = uploads or Uploads(ByteBudget("uploads", _UNLIMITED, _UNLIMITED)).open(
            "", lambda: None
        )
        self.last_active = clock()
        """The time of the last request or reply."""
        self.request_count = 0
        """The number of requests."""
        self._waiting: dict[int, float] = {}
        """Streams with headers but no data, with the time of the headers."""
        self._incomplete: dict[int, FirstMessage] = {}
        """Streams whose first message has begun but is incomplete."""
        self._running: set[int] = set()
        """Streams with a complete request and an incomplete reply."""
        self._held: HeldFrames | None = None
        """Frames that wait until the burst has room; None if no frames are held back."""
        self._last_stream = 0
        self._client_frames = FrameReader(skip=PREFACE_SIZE)
        self._server_frames = FrameReader()
        self._control_frames = ControlFrames(self._limits.control_frames, self.last_active)
        self._update_rate = RateLimit(self._limits.window_updates, self.last_active)
        self._header_block = bytearray()
        self._header_frame_count = 0

    @property
    def is_busy(self) -> bool:
        return self._held is not None or bool(self._running)

    @property
    def held_size(self) -> int:
        """Number of bytes that are held back. To try again to forward them, call `feed_client`
        without bytes."""
        return self._held.size if self._held is not None else 0

    @property
    def waiting_since(self) -> float | None:
        """Of all streams whose first message is incomplete, the earliest time of last progress.

        Streams that wait for memory for their upload do not count. None if no stream counts.
        """
        times = [next(iter(self._waiting.values()))] if self._waiting else []
        times += [
            message.last_active
            for stream, message in self._incomplete.items()
            if not self._uploads.is_waiting(stream)
        ]
        return min(times, default=None)

    def feed_client(self, data: memoryview) -> memoryview:
        """Return the bytes to forward now. Raise ProtocolViolation if the client must be
        disconnected."""
        now = self._clock()
        if self._held is None:
            return self._take(data, now)
        ahead = self._take(memoryview(self._held.feed(bytes(data))), now)
        if self._held.is_within_frame or self._burst.is_full(now):
            return ahead
        held, self._held = self._held.take(), None
        return memoryview(bytes(ahead) + bytes(self._take(memoryview(held), now)))

    def _take(self, data: memoryview, now: float) -> memoryview:
        """Inspect the frames, and return the bytes that may be forwarded."""
        before, waiting, running = self._client_frames.partial, self._waiting, self._running
        for offset, kind, flags, stream, size, payload in self._client_frames.read(data):
            if kind == DATA and (size or flags & END_STREAM):
                if flags & END_STREAM and waiting.pop(stream, None) is not None:
                    running.add(stream)  # the usual case: one frame with the message
                elif stream not in running:
                    self._add_data(stream, flags, size, payload, now)
            elif kind == HEADERS:
                if not self._is_open(stream):  # otherwise, these are trailers
                    if self._burst.is_full(now):
                        return self._hold(before + bytes(data), len(before) + offset, now)
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
        after = len(self._client_frames.partial)
        if not (before or after):
            return data
        whole = before + bytes(data)
        return memoryview(whole)[: len(whole) - after]

    def _hold(self, data: bytes, at: int, now: float) -> memoryview:
        """Start to hold back the frames at an offset. Return the bytes that are forwarded
        nevertheless."""
        self._held = HeldFrames(self._last_stream)
        ahead = self._take(memoryview(self._held.feed(data[at:])), now)
        return memoryview(data[:at] + bytes(ahead))

    def feed_server(self, data: memoryview) -> memoryview:
        """Return the bytes to forward. Omit the window updates to withhold, and add those withheld
        earlier that may be sent now."""
        before, withheld = self._server_frames.partial, []
        for offset, kind, flags, stream, _, payload in self._server_frames.read(data):
            self._control_frames.on_server_frame(kind, flags)
            if kind == RST_STREAM or (flags & END_STREAM and kind in _MAY_END_STREAM):
                self.last_active = self._clock()
                self._burst.end(stream)
                self._close_stream(stream)
            elif kind == HEADERS:  # the beginning of a reply
                self._burst.end(stream)
                if stream not in self._running and self._is_open(stream):
                    self._mark_running(stream)
            elif kind == WINDOW_UPDATE and self._uploads.withhold(stream, read_increment(payload)):
                withheld.append(offset)
        after = self._server_frames.partial
        if not (before or after or withheld or self._uploads.has_granted):
            return data
        return memoryview(self._rewrite(before + bytes(data), len(before), len(after), withheld))

    def _rewrite(self, data: bytes, earlier: int, later: int, withheld: Sequence[int]) -> bytes:
        """Return the complete frames, without the withheld ones and with the granted window
        updates.

        The offsets in `withheld` are relative to the end of the first `earlier` bytes.
        """
        pieces, at = [], 0
        for offset in withheld:
            pieces.append(data[at : earlier + offset])
            at = earlier + offset + WINDOW_UPDATE_SIZE
        pieces.append(data[at : len(data) - later])
        if not self._server_frames.is_within_payload:
            now = self._clock()
            for stream, increment in self._uploads.take_granted().items():
                pieces.append(encode_window_update(stream, increment))
                self._incomplete[stream].last_active = now
        return b"".join(pieces)

    def _open_stream(self, stream: int, now: float, *, ended: bool) -> None:
        self.request_count += 1
        self.last_active = now
        self._last_stream = max(self._last_stream, stream)
        self._burst.begin(stream, now)
        if ended:
            self._running.add(stream)
        else:
            self._waiting[stream] = now

    def _is_open(self, stream: int) -> bool:
        return stream in self._running or stream in self._waiting or stream in self._incomplete

    def _add_data(self, stream: int, flags: int, size: int, payload: bytes, now: float) -> None:
        """Process data of a stream whose first message is incomplete."""
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
        if message.size:
            self._uploads.begin(stream, message.size)
        self._uploads.receive(stream, size)
        if len(self._incomplete) > self._limits.incomplete:
            raise ProtocolViolation(
                f"{len(self._incomplete)} requests have sent incomplete messages; "
                f"at most {self._limits.incomplete} are allowed"
            )

    def _mark_running(self, stream: int) -> None:
        self._close_stream(stream)
        self._running.add(stream)

    def _close_stream(self, stream: int) -> None:
        self._waiting.pop(stream, None)
        if self._incomplete.pop(stream, None) is not None:
            self._uploads.end(stream)
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
