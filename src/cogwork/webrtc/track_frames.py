"""A video that the server sends, and the tracks of its viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cogwork.media.encoded_frames import FrameSplitter
from cogwork.media.picture_group import PictureGroup
from cogwork.webrtc.video_track import VideoTrack


class TrackFrames(asyncio.Protocol):
    def __init__(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the server has closed the socket."""
        self._on_end = on_end
        self._splitter = FrameSplitter()
        self._group = PictureGroup()
        """The frames since the last key frame, if a camera has encoded them."""
        self.tracks: set[VideoTrack] = set()
        self.requests_key = False
        """Whether a request for a key frame is scheduled."""
        self.key_requested_at = 0.0

    def data_received(self, data: bytes) -> None:
        for frame in self._splitter.feed(data):
            if frame.is_from_camera:
                self._group.add(frame)
            else:
                self._group.clear()
            for track in self.tracks:
                track.add(frame)

    def repeat(self, track: VideoTrack) -> bool:
        """Send the frames since the camera's last key frame to a viewer again. Return whether there
        are any such frames."""
        frames = self._group.repeat()
        if frames:
            track.repeat(frames)
        return bool(frames)

    def connection_lost(self, _: Exception | None) -> None:
        self._on_end()
