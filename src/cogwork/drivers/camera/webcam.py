"""A camera that is connected to this computer."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.drivers.camera.attributes import WebcamAttributes
from cogwork.drivers.camera.capture_camera import CaptureCamera
from cogwork.drivers.camera.format_selection import FormatRequest
from cogwork.drivers.camera.v4l2_source import WebcamSource
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies


class WebcamCamera(CaptureCamera):
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: WebcamAttributes, dependencies: Dependencies
    ) -> WebcamCamera:
        del dependencies
        request = FormatRequest(
            attributes.format, attributes.width_px, attributes.height_px, attributes.frame_rate
        )
        source = WebcamSource(attributes.video_path, request)
        return cls(name, attributes, source, SystemClock(), frame_rate=attributes.frame_rate)
