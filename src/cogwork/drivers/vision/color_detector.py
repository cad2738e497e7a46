"""A vision service that detects blobs of one color."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.vision.attributes import ColorDetectorAttributes
from cogwork.drivers.vision.color_blobs import ColorRange, find_blobs, nearest_color_name, parse_hue
from cogwork.drivers.vision.frame_vision import FrameVision, VisionResult, find_default_camera
from cogwork.drivers.vision.label_filter import NO_FILTER, select_detections
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class ColorDetector(FrameVision):
    def __init__(
        self, name: ResourceName, attributes: ColorDetectorAttributes, dependencies: Dependencies
    ) -> None:
        camera = find_default_camera(attributes.camera_name, dependencies)
        super().__init__(name, SystemClock(), camera=camera)
        hue = parse_hue(attributes.detect_color)
        if hue is None:
            raise InvalidRequest(
                f'"detect_color" is {attributes.detect_color}, a shade of gray without a hue; '
                "choose a color, because blobs are detected by hue"
            )
        self._color_range = ColorRange(
            hue,
            attributes.hue_tolerance_pct,
            attributes.saturation_cutoff_pct,
            attributes.value_cutoff_pct,
        )
        self._min_size = attributes.segment_size_px
        self._labels = Labels({0: attributes.label or nearest_color_name(hue)})

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: ColorDetectorAttributes,
        dependencies: Dependencies,
    ) -> ColorDetector:
        return cls(name, attributes, dependencies)

    @property
    def is_detector(self) -> bool:
        return True

    @property
    def is_classifier(self) -> bool:
        return False

    def explain_unsupported(self, role: str) -> str:
        return f"a color_detector is not a {role}"

    async def analyze_frame(self, frame: Frame) -> VisionResult:
        if frame.is_depth:
            raise InvalidRequest("blobs are detected in color images, not in depth images")
        found = await self.workers.run(find_blobs, frame.pixels, self._color_range, self._min_size)
        return VisionResult(
            select_detections(found, self._labels, NO_FILTER, frame.width, frame.height)
        )
