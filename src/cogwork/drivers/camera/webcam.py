"""A camera that is plugged into this computer."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.drivers.camera.attributes import WebcamAttributes
from cogwork.drivers.camera.captured import CapturedCamera
from cogwork.drivers.camera.negotiate import Wanted
from cogwork.drivers.camera.v4l2_source import WebcamSource
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class WebcamCamera(CapturedCamera):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: WebcamAttributes, dependencies: Dependencies
    ) -> WebcamCamera:
        del dependencies
        wanted = Wanted(
            attributes.format, attributes.width_px, attributes.height_px, attributes.frame_rate
        )
        source = WebcamSource(attributes.video_path, wanted)
        return cls(name, attributes, source, SystemClock(), frame_rate=attributes.frame_rate)
