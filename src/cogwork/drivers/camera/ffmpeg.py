"""A camera for any source that FFmpeg can open."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.drivers.camera.attributes import FfmpegAttributes
from cogwork.drivers.camera.capture_camera import CaptureCamera
from cogwork.drivers.camera.video_source import VideoSource
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class FfmpegCamera(CaptureCamera):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FfmpegAttributes, dependencies: Dependencies
    ) -> FfmpegCamera:
        del dependencies
        return cls(name, attributes, VideoSource(attributes), SystemClock(), stall=attributes.stall)
