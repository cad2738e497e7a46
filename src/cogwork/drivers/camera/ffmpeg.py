"""A camera that plays whatever FFmpeg can open."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.drivers.camera.attributes import FfmpegAttributes
from cogwork.drivers.camera.captured import CapturedCamera
from cogwork.drivers.camera.video import Video
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class FfmpegCamera(CapturedCamera):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FfmpegAttributes, dependencies: Dependencies
    ) -> FfmpegCamera:
        del dependencies
        return cls(name, attributes, Video(attributes), SystemClock(), stall=attributes.stall)
