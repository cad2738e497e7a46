"""One video: the frames of a camera, encoded once for all viewers or by the camera itself."""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import socket
from collections.abc import Awaitable, Callable
from functools import partial

from cogwork.core.clock import Clock
from cogwork.core.workers import Workers
from cogwork.media.encoded_feed import EncodedFeed, FeedReader
from cogwork.media.encoded_frames import TICKS_PER_SECOND, join_frame
from cogwork.resource.frame import Frame
from cogwork.robot.video.adaptive_encoder import AdaptiveEncoder, Size

MAX_FRAME_RATE = 30.0
_REPEAT_INTERVAL = 1.0
"""Seconds after which an unchanged frame is sent again."""
_RETRY_INTERVAL = 0.5
"""Seconds between two requests to a camera that returns no frame."""
_FRAME_TIMEOUT = 5.0
"""Timeout in seconds to get a frame from a camera."""
_MAX_UNSENT = 1 << 20
"""Maximum bytes that the WebRTC process has not read. Above this limit, frames are dropped."""
_FEED_TIMEOUT = 3.0
"""Seconds without a frame after which the camera is asked for a new feed."""
_NARROW_SHARE = 0.9
"""Minimum share of the camera's bit rate that the viewers' networks must be able to carry."""
_NARROW_INTERVAL = 30.0
"""Seconds until the camera's own video is tried again after the viewers' networks were too slow."""
_METER_INTERVAL = 2.0
"""Seconds over which the bit rate of a camera is measured."""
_MAX_REPEATS = 3
"""Number of consecutive measurements above what the viewers' networks can carry, after which the
camera's video is no longer forwarded. A single one may be wrong, because early estimates of the
networks are too low."""

GetFrame = Callable[[], Awaitable[Frame]]
FindFeed = Callable[[], EncodedFeed | None]

_log = logging.getLogger("rdk.networking")
_numbers = itertools.count(1)


class VideoStream:
    """A video that is encoded while it has viewers."""

    def __init__(
        self,
        name: str,
        codec: str,
        size: Size | None,
        get_frame: GetFrame,
        find_feed: FindFeed,
        clock: Clock,
    ) -> None:
        """Create a video. `size`: None for the camera's size. `find_feed` returns the camera's own
        video."""
        self.id = f"{name}/{codec}/{next(_numbers)}"
        self.name = name
        self.codec = codec
        self.size = size
        self.viewers = 0
        self._get_frame = get_frame
        self._find_feed = find_feed
        self._clock = clock
        self._workers = Workers(f"video {name}", waiting=2)
        self.encoder = AdaptiveEncoder(name, codec, size, clock)
        self._needs_key = True
        self._passes_on_after = -math.inf
        """Time until which the viewers' networks are considered too slow for the camera's own
        video."""
        self._last: Frame | None = None
        self._sent_at = self._due = clock.monotonic()
        self._transport: asyncio.WriteTransport | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> socket.socket:
        """Start to encode, and return the socket from which the frames can be read."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours)
        self._task = loop.create_task(self._run(), name=f"video {self.name}")
        return theirs

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._transport is not None:
            self._transport.close()
        self._workers.close()

    def request_key(self) -> None:
        """Make the next frame a key frame."""
        self._needs_key = True

    async def _run(self) -> None:
        while True:
            feed = self._choose_feed()
            if feed is not None:
                with feed.open() as reader:
                    await self._pass_on(reader)
            else:
                await self._send_newest()

    def _choose_feed(self) -> EncodedFeed | None:
        """Return the video that the camera encodes; None if the viewers cannot show it."""
        if self.codec != "H264" or self.size is not None:
            return None
        return self._find_feed() if self._clock.monotonic() >= self._passes_on_after else None

    async def _pass_on(self, reader: FeedReader) -> None:
        """Send the video that the camera encodes, until it ends or the viewers' networks are too
        slow."""
        assert self._transport is not None
        _log.debug("forwarding the encoded video of camera %s", self.name)
        self.encoder.stop()
        self._needs_key = True
        awaits_key = True
        since, received = self._clock.monotonic(), 0
        times_too_much = 0
        while True:
            try:
                async with asyncio.timeout(_FEED_TIMEOUT):
                    frame = await reader.read()
            except TimeoutError:
                return
            if frame is None:
                return
            awaits_key = awaits_key and not frame.is_key
            if self._transport.get_write_buffer_size() > _MAX_UNSENT:
                awaits_key = True
            if not awaits_key:
                self._transport.write(join_frame(frame))
            received += len(frame.data)
            now = self._clock.monotonic()
            if now - since >= _METER_INTERVAL:
                is_too_much = self._is_too_much(received * 8 / (now - since))
                times_too_much = times_too_much + 1 if is_too_much else 0
                if times_too_much >= _MAX_REPEATS:
                    self._passes_on_after = now + _NARROW_INTERVAL
                    return
                since, received = now, 0

    def _is_too_much(self, bitrate: float) -> bool:
        carried = self.encoder.bitrate
        return carried is not None and carried < _NARROW_SHARE * bitrate

    async def _send_newest(self) -> None:
        """Encode the latest frame of the camera if the viewers do not have it yet. Then wait."""
        try:
            async with asyncio.timeout(_FRAME_TIMEOUT):
                frame = await self._get_frame()
        except Exception as error:
            # Cameras may raise any error. The video continues when the camera has frames again.
            _log.debug("cannot get a frame from camera %s: %s", self.name, error)
            await self._clock.sleep(_RETRY_INTERVAL)
            return
        now = self._clock.monotonic()
        is_new = self._last is None or frame.image is not self._last.image
        if is_new or self._needs_key or now - self._sent_at >= _REPEAT_INTERVAL:
            self._last, self._sent_at = frame, now
            await self._send(frame, round(now * TICKS_PER_SECOND))
        self._due = max(self._due + 1 / MAX_FRAME_RATE, self._clock.monotonic())
        await self._clock.sleep(self._due - self._clock.monotonic())

    async def _send(self, frame: Frame, time: int) -> None:
        transport = self._transport
        assert transport is not None
        if transport.get_write_buffer_size() > _MAX_UNSENT:
            self._needs_key = True
            return
        is_key, self._needs_key = self._needs_key, False
        try:
            encode = partial(self.encoder.encode, as_key=is_key)
            pictures = await self._workers.run(encode, frame, time)
        except Exception as error:
            # Libraries raise many types of errors; the next frame may succeed.
            _log.error("cannot encode a frame from camera %s: %s", self.name, error)
            self.encoder.fail()
            self._needs_key = True
            await self._clock.sleep(_RETRY_INTERVAL)
            return
        for picture in pictures:
            transport.write(join_frame(picture))
