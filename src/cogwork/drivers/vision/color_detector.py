"""A vision service that finds patches of one colour."""

from __future__ import annotations

from cogwork.core.clock import SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.vision.attributes import ColorDetectorAttributes
from cogwork.drivers.vision.choose import EVERYTHING, detections
from cogwork.drivers.vision.frame_vision import Found, FrameVision, default_camera
from cogwork.drivers.vision.patches import Colour, hue_of, patches, plain_name
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class ColorDetector(FrameVision):
    def __init__(
        self, name: ResourceName, attributes: ColorDetectorAttributes, dependencies: Dependencies
    ) -> None:
        camera = default_camera(attributes.camera_name, dependencies)
        super().__init__(name, SystemClock(), camera=camera)
        hue = hue_of(attributes.detect_color)
        if hue is None:
            raise InvalidRequest(
                f'"detect_color" is {attributes.detect_color}, a shade of grey: patches are found '
                "by their hue, and it has none"
            )
        self._colour = Colour(
            hue,
            attributes.hue_tolerance_pct,
            attributes.saturation_cutoff_pct,
            attributes.value_cutoff_pct,
        )
        self._least_size = attributes.segment_size_px
        self._labels = Labels({0: attributes.label or plain_name(hue)})

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: ColorDetectorAttributes,
        dependencies: Dependencies,
    ) -> ColorDetector:
        return cls(name, attributes, dependencies)

    @property
    def detects(self) -> bool:
        return True

    @property
    def classifies(self) -> bool:
        return False

    def why_not(self, role: str) -> str:
        return f"a color_detector is no {role}"

    async def find(self, frame: Frame) -> Found:
        if frame.is_depth:
            raise InvalidRequest(
                "patches of a colour are found in pictures in colour, not in depth"
            )
        found = await self.workers.run(patches, frame.pixels, self._colour, self._least_size)
        return Found(detections(found, self._labels, EVERYTHING, frame.width, frame.height))
