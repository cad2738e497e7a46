"""A camera for any source that FFmpeg can open."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.drivers.camera.attributes import FfmpegAttributes
from cogwork.drivers.camera.capture_camera import CaptureCamera
from cogwork.drivers.camera.video_source import VideoSource
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.encoded_feed import EncodedFeed


class FfmpegCamera(CaptureCamera):
    encoded_feed: EncodedFeed

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FfmpegAttributes, dependencies: Dependencies
    ) -> FfmpegCamera:
        del dependencies
        source = VideoSource(attributes)
        camera = cls(name, attributes, source, SystemClock(), stall=attributes.stall)
        camera.encoded_feed = source.feed
        return camera
