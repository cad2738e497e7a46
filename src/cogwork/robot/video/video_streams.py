"""The videos that WebRTC clients watch."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.media.encoded_feed import EncodedFeed
from cogwork.resource.frame import Frame
from cogwork.robot.video.adaptive_encoder import Size
from cogwork.robot.video.video_stream import VideoStream
from cogwork.wire.transports.webrtc_peers import PeerProcess

MAX_VIDEOS = 8
"""Maximum videos per client."""
MAX_STREAMS = 16
"""Maximum videos in total. Each is encoded in its own thread."""


class TooManyVideos(CogworkError):
    status = "RESOURCE_EXHAUSTED"


class AlreadyActive(CogworkError):
    status = "ALREADY_EXISTS"


@dataclass(slots=True)
class _View:
    """A camera that a client watches."""

    codec: str
    stream: VideoStream


class VideoStreams:
    def __init__(
        self,
        output: PeerProcess,
        get_frame: Callable[[str], Awaitable[Frame]],
        find_feed: Callable[[str], EncodedFeed | None],
        clock: Clock,
    ) -> None:
        """Create a manager without videos.

        `get_frame` returns the latest color image of a camera, `find_feed` the video that it
        encodes.
        """
        self._output = output
        self._get_frame = get_frame
        self._find_feed = find_feed
        self._clock = clock
        self._views: defaultdict[str, dict[str, _View]] = defaultdict(dict)
        """Views by client and camera."""
        self._changing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Locks by client. A lock is held while the client's views change, so that the changes run
        one after another."""
        self._streams: dict[str, VideoStream] = {}
        """Videos by id."""
        self._starting = asyncio.Lock()
        self._adding: set[asyncio.Task[None]] = set()
        output.on_key = self._on_key
        output.on_bitrate = self._on_bitrate

    async def add(self, peer_id: str, name: str) -> None:
        """Send the video of a camera to a client. Raise CogworkError."""
        # Continue if the call is cancelled: the client may still answer the offer of the video.
        adding = asyncio.ensure_future(self._add(peer_id, name))
        self._adding.add(adding)
        adding.add_done_callback(self._adding.discard)
        await asyncio.shield(adding)

    async def remove(self, peer_id: str, name: str) -> None:
        async with self._changing[peer_id]:
            view = self._views[peer_id].pop(name, None)
            if view is not None:
                self._output.remove_track(peer_id, name)
                self._release(view.stream)

    async def resize(self, peer_id: str, name: str, size: Size | None) -> None:
        """Send the video in another size; None for the camera's size."""
        async with self._changing[peer_id]:
            view = self._views[peer_id].get(name)
            if view is None:
                raise InvalidRequest(f'the stream of "{name}" is not active; add it first')
            if view.stream.size != size:
                before = view.stream
                await self._show(peer_id, name, view.codec, size)
                self._release(before)

    def forget(self, peer_id: str) -> None:
        """Remove the views of a client that has disconnected."""
        for view in self._views.pop(peer_id, {}).values():
            self._release(view.stream)
        self._changing.pop(peer_id, None)

    async def _add(self, peer_id: str, name: str) -> None:
        async with self._changing[peer_id]:
            views = self._views[peer_id]
            if name in views:
                raise AlreadyActive(f'the stream of "{name}" is already active')
            if len(views) >= MAX_VIDEOS:
                raise TooManyVideos(
                    f"{MAX_VIDEOS} streams are already active, which is the maximum; remove one "
                    "first"
                )
            # Raise an error now if the camera has no images.
            await self._get_frame(name)
            codec = await self._output.add_track(peer_id, name)
            try:
                await self._show(peer_id, name, codec, None)
            except BaseException:
                self._output.remove_track(peer_id, name)
                raise

    async def _show(self, peer_id: str, name: str, codec: str, size: Size | None) -> None:
        async with self._starting:
            stream = await self._find_stream(name, codec, size)
            stream.viewers += 1
        self._views[peer_id][name] = _View(codec, stream)
        self._output.attach(peer_id, name, stream.id)

    async def _find_stream(self, name: str, codec: str, size: Size | None) -> VideoStream:
        for stream in self._streams.values():
            if (stream.name, stream.codec, stream.size) == (name, codec, size):
                return stream
        if len(self._streams) >= MAX_STREAMS:
            raise TooManyVideos(
                f"this machine already encodes {MAX_STREAMS} videos, which is the maximum; choose "
                "a camera and a size that another client is watching"
            )
        stream = VideoStream(
            *(name, codec, size),
            partial(self._get_frame, name),
            partial(self._find_feed, name),
            self._clock,
        )
        try:
            with await stream.start() as frames:
                self._output.open_source(stream.id, frames)
        except BaseException:
            stream.close()
            raise
        self._streams[stream.id] = stream
        return stream

    def _release(self, stream: VideoStream) -> None:
        stream.viewers -= 1
        if not stream.viewers:
            del self._streams[stream.id]
            stream.close()

    def _on_key(self, stream_id: str) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.request_key()

    def _on_bitrate(self, stream_id: str, bitrate: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.encoder.limit_bitrate(bitrate)
