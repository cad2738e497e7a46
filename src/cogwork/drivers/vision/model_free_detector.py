"""Base class of detectors that need no ML model."""

from __future__ import annotations

from typing import Self

from viam.proto.service.vision import Detection

from cogwork.core.clock import SystemClock
from cogwork.drivers.vision.attributes import (
    MAX_DETECTIONS,
    ColorDetectorAttributes,
    FakeVisionAttributes,
)
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.frame_vision import FrameVision, find_default_camera
from cogwork.drivers.vision.postprocessing.label_filter import to_detections
from cogwork.drivers.vision.postprocessing.nms import top_k
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class ModelFreeDetector(FrameVision):
    """A detector that is built from its attributes. Subclasses supply candidates and labels."""

    labels: Labels

    def __init__(
        self,
        name: ResourceName,
        attributes: ColorDetectorAttributes | FakeVisionAttributes,
        dependencies: Dependencies,
    ) -> None:
        camera = find_default_camera(attributes.camera_name, dependencies)
        super().__init__(name, SystemClock(), camera=camera)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: ColorDetectorAttributes | FakeVisionAttributes,
        dependencies: Dependencies,
    ) -> Self:
        return cls(name, attributes, dependencies)

    @property
    def is_detector(self) -> bool:
        return True

    def to_detections(self, candidates: Candidates, frame: Frame) -> list[Detection]:
        found = top_k(candidates, MAX_DETECTIONS)
        return to_detections(found, self.labels, frame.width, frame.height)
