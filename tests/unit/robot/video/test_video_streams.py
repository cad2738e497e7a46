from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.waiting import poll, run_others, wait_until

from cogwork.core.clock import SystemClock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.workers import Workers
from cogwork.media.encoded_feed import EncodedFeed
from cogwork.media.encoded_frames import EncodedFrame, FrameSplitter
from cogwork.resource.frame import Frame, Image
from cogwork.robot.video.adaptive_encoder import Size
from cogwork.robot.video.video_streams import MAX_VIDEOS, AlreadyActive, TooManyVideos, VideoStreams

WORKERS = Workers("test")


class Output:
    """Stands in for the WebRTC process: it keeps the sockets, and knows who watches what."""

    def __init__(self) -> None:
        self.on_open: Callable[[str], None] = lambda _: None
        self.on_key: Callable[[str], None] = lambda _: None
        self.on_bitrate: Callable[[str, int], None] = lambda *_: None
        self.sources: dict[str, socket.socket] = {}
        self.shown: dict[tuple[str, str], str] = {}
        self.codec = "H264"

    async def open(self, *_: Any) -> str:
        raise NotImplementedError

    def add_candidate(self, *_: Any) -> None:
        raise NotImplementedError

    def open_source(self, source_id: str, frames: socket.socket) -> None:
        self.sources[source_id] = copy = frames.dup()
        copy.setblocking(False)

    async def add_track(self, peer_id: str, name: str) -> str:
        await run_others()
        return self.codec

    def attach(self, peer_id: str, name: str, source_id: str) -> None:
        self.shown[peer_id, name] = source_id

    def remove_track(self, peer_id: str, name: str) -> None:
        del self.shown[peer_id, name]

    async def read(self, source_id: str, splitter: FrameSplitter) -> list[EncodedFrame]:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            return splitter.feed(await loop.sock_recv(self.sources[source_id], 1 << 20))

    def close(self) -> None:
        for each in self.sources.values():
            each.close()


class Cameras:
    def __init__(self) -> None:
        self.is_broken = False
        self.failures = 0
        self.size = (320, 240)
        self.image: Image | None = None
        self.feed = EncodedFeed()

    def find_feed(self, _: str) -> EncodedFeed | None:
        return self.feed if self.feed.is_running else None

    async def get(self, name: str) -> Frame:
        if self.is_broken:
            self.failures += 1
            raise CogworkError(f'camera "{name}" is broken')
        if self.image is None or self.image.pixels.shape[1::-1] != self.size:
            width, height = self.size
            self.image = Image(np.zeros((height, width, 3), np.uint8), WORKERS)
        return Frame(self.image, 0.0)


class Site:
    def __init__(self) -> None:
        self.output, self.cameras = Output(), Cameras()
        self.videos = VideoStreams(
            self.output, self.cameras.get, self.cameras.find_feed, SystemClock()
        )

    @property
    def running(self) -> int:
        return len(self.videos._streams)


@pytest.fixture
async def site() -> Any:
    site = Site()
    yield site
    for peer in tuple(site.videos._views):
        site.videos.forget(peer)
    assert site.running == 0
    await run_others()
    site.output.close()


async def test_viewers_of_a_camera_share_an_encoder_while_there_are_any(site: Site) -> None:
    await asyncio.gather(*(site.videos.add(f"peer{number}", "cam") for number in range(4)))
    assert site.running == 1
    assert len(set(site.output.shown.values())) == 1
    site.output.codec = "VP8"
    await site.videos.add("peer4", "cam")
    assert site.running == 2
    for number in range(4):
        site.videos.forget(f"peer{number}")
    assert site.running == 1
    await site.videos.remove("peer4", "cam")
    assert site.running == 0
    await site.videos.remove("peer4", "cam")  # twice is no mistake


async def test_picture_that_does_not_change_is_repeated_on_request(site: Site) -> None:
    await site.videos.add("peer", "cam")
    (source,) = site.output.sources
    splitter = FrameSplitter()
    (first,) = await site.output.read(source, splitter)
    assert first.is_key
    start = asyncio.get_running_loop().time()
    site.output.on_key(source)
    (second,) = await site.output.read(source, splitter)
    assert second.is_key
    assert second.time > first.time
    assert asyncio.get_running_loop().time() - start < 0.9
    (third,) = await site.output.read(source, splitter)
    assert not third.is_key


async def test_lower_bitrate_starts_the_encoder_anew(site: Site) -> None:
    await site.videos.add("peer", "cam")
    (source,) = site.output.sources
    (stream,) = site.videos._streams.values()
    splitter = FrameSplitter()
    await site.output.read(source, splitter)
    assert stream.encoder.current is not None
    assert stream.encoder.current.bitrate == 300_000
    site.output.on_bitrate(source, 150_000)
    site.output.on_key(source)
    await site.output.read(source, splitter)
    assert stream.encoder.current.bitrate == 150_000
    site.output.on_bitrate(source, 1)
    site.output.on_key(source)
    await site.output.read(source, splitter)
    assert stream.encoder.current.bitrate == 100_000


async def test_viewer_may_choose_a_size(site: Site) -> None:
    await site.videos.add("peer1", "cam")
    await site.videos.add("peer2", "cam")
    await site.videos.resize("peer2", "cam", Size(160, 120))
    assert site.running == 2
    assert len(set(site.output.shown.values())) == 2
    await site.videos.resize("peer2", "cam", None)
    assert site.running == 1
    with pytest.raises(InvalidRequest, match="is not active; add it first"):
        await site.videos.resize("peer3", "cam", None)


async def test_video_follows_a_camera_that_changes_or_fails_for_a_while(site: Site) -> None:
    await site.videos.add("peer", "cam")
    (source,) = site.output.sources
    (stream,) = site.videos._streams.values()
    splitter = FrameSplitter()
    await site.output.read(source, splitter)
    site.cameras.is_broken = True
    await wait_until(lambda: site.cameras.failures > 1)
    site.cameras.is_broken, site.cameras.size = False, (641, 481)
    (picture,) = await site.output.read(source, splitter)
    assert picture.is_key
    assert stream.encoder.current is not None
    assert stream.encoder.current.size == (640, 480)


async def test_changes_of_a_client_follow_one_another(site: Site) -> None:
    twice = await asyncio.gather(
        *(site.videos.add("peer", "cam") for _ in range(2)), return_exceptions=True
    )
    assert [type(each) for each in twice] == [type(None), AlreadyActive]
    await asyncio.gather(
        *(site.videos.resize("peer", "cam", size) for size in (Size(160, 120), Size(80, 60), None)),
        site.videos.remove("peer", "cam"),
        site.videos.add("peer", "cam"),
    )
    assert site.running == 1
    (stream,) = site.videos._streams.values()
    assert (stream.viewers, stream.size) == (1, None)


async def test_client_that_disappears_while_a_video_is_added_leaves_nothing(site: Site) -> None:
    adding = asyncio.ensure_future(site.videos.add("peer", "cam"))
    await run_others()
    adding.cancel()
    await asyncio.gather(adding, *site.videos._adding, return_exceptions=True)
    site.videos.forget("peer")
    assert site.running == 0


async def test_mistakes_are_refused(site: Site) -> None:
    site.cameras.is_broken = True
    with pytest.raises(CogworkError, match="is broken"):
        await site.videos.add("peer", "cam")
    site.cameras.is_broken = False
    await site.videos.add("peer", "cam0")
    with pytest.raises(AlreadyActive, match="already active"):
        await site.videos.add("peer", "cam0")
    for number in range(1, MAX_VIDEOS):
        await site.videos.add("peer", f"cam{number}")
    with pytest.raises(TooManyVideos, match="8 streams are already active"):
        await site.videos.add("peer", "another")


def camera_frame(number: int, *, is_key: bool = False, size: int = 1) -> EncodedFrame:
    return EncodedFrame(bytes([number]) * size, number * 6000, is_key, is_from_camera=True)


async def test_video_that_the_camera_encodes_is_sent_as_it_is(site: Site) -> None:
    site.cameras.feed.put(camera_frame(1, is_key=True))
    site.cameras.feed.put(camera_frame(2))
    await site.videos.add("peer", "cam")
    (source,) = site.output.sources
    (stream,) = site.videos._streams.values()
    splitter = FrameSplitter()
    frames: list[EncodedFrame] = []
    while len(frames) < 2:
        frames += await site.output.read(source, splitter)
    # The viewer catches up, and sees only the newest picture.
    assert [(each.data, each.is_key) for each in frames] == [(b"\1", True), (b"\2", False)]
    assert [each.time for each in frames] == [2 * 6000 + 1, 2 * 6000 + 2]
    site.cameras.feed.put(camera_frame(3))
    assert await site.output.read(source, splitter) == [camera_frame(3)]
    assert stream.encoder.current is None
    # The camera changes to another codec.
    site.cameras.feed.stop()
    (frame,) = await site.output.read(source, splitter)
    assert frame.is_key
    assert not frame.is_from_camera
    assert stream.encoder.current is not None


async def test_smaller_video_and_vp8_are_encoded_here(site: Site) -> None:
    site.cameras.feed.put(camera_frame(1, is_key=True))
    await site.videos.add("peer", "cam")
    await site.videos.resize("peer", "cam", Size(160, 120))
    site.output.codec = "VP8"
    await site.videos.add("other", "cam")
    for watched in (("peer", "cam"), ("other", "cam")):
        (frame,) = await site.output.read(site.output.shown[watched], FrameSplitter())
        assert not frame.is_from_camera


async def test_video_that_the_network_cannot_carry_is_encoded_here(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.robot.video.video_stream._METER_INTERVAL", 0.1)
    site.cameras.feed.put(camera_frame(1, is_key=True))
    await site.videos.add("peer", "cam")
    (source,) = site.output.sources
    site.output.on_bitrate(source, 200_000)
    splitter = FrameSplitter()

    async def read_frames() -> list[EncodedFrame]:
        site.cameras.feed.put(camera_frame(2, size=10_000))
        return await site.output.read(source, splitter)

    await poll(read_frames, lambda frames: any(not each.is_from_camera for each in frames))
    (stream,) = site.videos._streams.values()
    assert stream.encoder.current is not None
    assert stream.encoder.current.bitrate == 200_000
