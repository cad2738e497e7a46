"""A feed of the video that a camera encodes itself, for viewers that can decode it directly."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from types import TracebackType
from typing import Self

from cogwork.media.encoded_frames import EncodedFrame
from cogwork.media.picture_group import PictureGroup

_MAX_WAITING = 60
"""Maximum live frames in the queue of a reader. A slower reader skips to the next key frame."""


class EncodedFeed:
    """A feed of H.264 frames in Annex B format, without B-frames.

    One thread writes the frames; readers run on event loops.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._group = PictureGroup()
        self._readers: set[FeedReader] = set()
        self._is_running = False

    @property
    def is_running(self) -> bool:
        """Whether a key frame has arrived since the last `stop`."""
        return self._is_running

    def put(self, frame: EncodedFrame) -> None:
        with self._lock:
            self._group.add(frame)
            self._is_running = self._is_running or frame.is_key
            for reader in self._readers:
                reader.put(frame)

    def stop(self) -> None:
        """End all readers, because the next frames belong to another stream or are not H.264."""
        with self._lock:
            self._group.clear()
            self._is_running = False
            for reader in self._readers:
                reader.put(None)

    def open(self) -> FeedReader:
        """Return a reader that starts with the last key frame."""
        with self._lock:
            reader = FeedReader(self, self._group.repeat())
            self._readers.add(reader)
            return reader

    def forget(self, reader: FeedReader) -> None:
        with self._lock:
            self._readers.discard(reader)


class FeedReader:
    """A reader of one feed. Leaving its context unsubscribes the reader."""

    def __init__(self, feed: EncodedFeed, frames: list[EncodedFrame]) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        self._frames: deque[EncodedFrame | None] = deque(frames)
        self._limit = len(frames) + _MAX_WAITING
        self._awaits_key = not frames
        self._arrived = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._feed.forget(self)

    async def read(self) -> EncodedFrame | None:
        """Return the next frame, or None after the last one."""
        while not self._frames:
            self._limit = _MAX_WAITING
            self._arrived.clear()
            if not self._frames:
                await self._arrived.wait()
        return self._frames.popleft()

    def put(self, frame: EncodedFrame | None) -> None:
        """Queue a frame, or None for the end of the feed. The thread of the camera calls this
        method."""
        if frame is not None:
            if len(self._frames) >= self._limit:
                self._frames.clear()
                self._awaits_key = True
            if self._awaits_key and not frame.is_key:
                return
            self._awaits_key = False
        self._frames.append(frame)
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no reader is left
            self._loop.call_soon_threadsafe(self._arrived.set)


def find_feed(camera: object) -> EncodedFeed | None:
    """Return the encoded video of a camera, or None if the camera sends none now."""
    feed = getattr(camera, "encoded_feed", None)
    return feed if isinstance(feed, EncodedFeed) and feed.is_running else None
