"""The viewers of each video, and the bitrates of their networks."""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from cogwork.helpers.control_channel import Message
from cogwork.webrtc.aiortc_internals import watch_feedback
from cogwork.webrtc.track_frames import TrackFrames
from cogwork.webrtc.video_negotiation import SentTrack
from cogwork.webrtc.video_track import VideoTrack

_KEY_INTERVAL = 0.5
"""Minimum seconds between two requests for a key frame of a video."""
_REPEAT_INTERVAL = 3.0
"""Minimum seconds between two repetitions of frames for a viewer, so that a lossy network is not
flooded."""
_BITRATE_LIFETIME = 5.0
"""Seconds after which a viewer's report of its bitrate expires."""


@dataclass(eq=False)
class Viewer:
    track: VideoTrack
    source_id: str = ""
    """The ID of the video that the viewer watches."""
    bitrate: int = 0
    """Bits per second that the client's network can transmit."""
    measured_at: float = -math.inf
    """The time of the client's last report of the bitrate."""
    repeated_at: float = -math.inf
    """The time when frames were last repeated for the viewer."""

    def set_bitrate(self, bitrate: int) -> None:
        self.bitrate = bitrate
        self.measured_at = asyncio.get_running_loop().time()


class Viewers:
    def __init__(self, send: Callable[[Message], None]) -> None:
        """`send` sends a message to the server."""
        self._send = send
        self._sources: dict[str, TrackFrames] = {}
        self._viewers: dict[tuple[str, str], Viewer] = {}
        """The viewers by peer and name of the video."""

    def open_source(self, source_id: str, frames: socket.socket) -> Coroutine[Any, Any, None]:
        """Create a video, and return a coroutine that reads its frames from the socket."""
        source = TrackFrames(lambda: self._forget_source(source_id))
        self._sources[source_id] = source
        return _connect(source, frames)

    def add(self, peer_id: str, name: str, sent: SentTrack) -> None:
        viewer = self._viewers[peer_id, name] = Viewer(sent.track)
        sent.track.on_key = partial(self._request_key, viewer)
        watch_feedback(sent.sender, sent.track.on_key, viewer.set_bitrate)

    def attach(self, peer_id: str, name: str, source_id: str) -> None:
        """Switch a track to another video."""
        viewer, source = self._viewers.get((peer_id, name)), self._sources.get(source_id)
        if viewer is None or source is None:
            return
        self._detach(viewer)
        viewer.source_id = source_id
        viewer.repeated_at = -math.inf
        viewer.track.restart()
        source.tracks.add(viewer.track)
        self._request_key(viewer)

    def remove(self, peer_id: str, name: str) -> None:
        viewer = self._viewers.pop((peer_id, name), None)
        if viewer is not None:
            self._detach(viewer)

    def remove_all(self, peer_id: str) -> None:
        for key in [key for key in self._viewers if key[0] == peer_id]:
            self._detach(self._viewers.pop(key))

    def report_bitrates(self) -> None:
        """Report to the server, for each video, the lowest bitrate of its viewers' networks."""
        since = asyncio.get_running_loop().time() - _BITRATE_LIFETIME
        bitrates: dict[str, int] = {}
        for viewer in self._viewers.values():
            if viewer.source_id and viewer.measured_at > since:
                known = bitrates.get(viewer.source_id, viewer.bitrate)
                bitrates[viewer.source_id] = min(known, viewer.bitrate)
        for source_id, bitrate in bitrates.items():
            self._send({"bitrate": bitrate, "of": source_id})

    def _forget_source(self, source_id: str) -> None:
        self._sources.pop(source_id, None)

    def _detach(self, viewer: Viewer) -> None:
        source = self._sources.get(viewer.source_id)
        if source is not None:
            source.tracks.discard(viewer.track)

    def _request_key(self, viewer: Viewer) -> None:
        """Ask the server for a key frame, at most twice a second for each video."""
        source = self._sources.get(viewer.source_id)
        if source is None or source.requests_key or self._repeat(viewer, source):
            return
        source.requests_key = True

        def send() -> None:
            source.requests_key = False
            self._send({"key": viewer.source_id})

        loop = asyncio.get_running_loop()
        source.key_requested_at, since = loop.time(), loop.time() - source.key_requested_at
        loop.call_later(max(0.0, _KEY_INTERVAL - since), send)

    def _repeat(self, viewer: Viewer, source: TrackFrames) -> bool:
        """Repeat the frames that a camera encoded, because a camera does not make key frames on
        request. Return whether any frames were repeated."""
        now = asyncio.get_running_loop().time()
        if now - viewer.repeated_at < _REPEAT_INTERVAL or not source.repeat(viewer.track):
            return False
        viewer.repeated_at = now
        return True


async def _connect(source: TrackFrames, frames: socket.socket) -> None:
    await asyncio.get_running_loop().create_connection(lambda: source, sock=frames)
