"""A video as one viewer receives it: encoded frames, without those that a slow viewer skips."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import av
from aiortc import MediaStreamTrack

from cogwork.media.encoded_frames import EncodedFrame

_TIME_BASE = Fraction(1, 90_000)
_MAX_WAITING = 8
"""Maximum frames queued for a viewer. A slower viewer skips the rest until the next key frame."""


class VideoTrack(MediaStreamTrack):
    """A track that can switch to another video, because a track cannot be replaced while it is
    sent."""

    kind = "video"

    def __init__(self) -> None:
        super().__init__()
        self.on_key: Callable[[], None] = lambda: None
        """Called when the viewer needs a key frame."""
        self._frames: deque[EncodedFrame] = deque()
        self._arrived = asyncio.Event()
        self._awaits_key = True
        self._most_waiting = _MAX_WAITING

    def restart(self) -> None:
        """Continue with the next key frame, which may belong to another video."""
        self._frames.clear()
        self._awaits_key = True

    def repeat(self, frames: Sequence[EncodedFrame]) -> None:
        """Continue with these frames, and queue all of them, even if they exceed the usual
        maximum."""
        self._frames = deque(frames)
        self._awaits_key = False
        self._most_waiting = len(frames) + _MAX_WAITING
        self._arrived.set()

    def add(self, frame: EncodedFrame) -> None:
        if self._awaits_key and not frame.is_key:
            return
        if len(self._frames) >= self._most_waiting:
            self._frames.clear()
            if not frame.is_key:
                self._awaits_key = True
                self.on_key()
                return
        self._awaits_key = False
        self._frames.append(frame)
        self._arrived.set()

    async def recv(self) -> av.Packet[Any]:
        while not self._frames:
            self._most_waiting = _MAX_WAITING
            self._arrived.clear()
            await self._arrived.wait()
        frame = self._frames.popleft()
        packet = av.Packet(frame.data)
        packet.pts = frame.time
        packet.time_base = _TIME_BASE
        return packet
