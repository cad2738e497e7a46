"""A vision service that reports the configured results for every image."""

from __future__ import annotations

import numpy as np
from viam.proto.service.vision import Classification

from cogwork.core.clock import SystemClock
from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.frame_vision import FrameVision, VisionResult, find_default_camera
from cogwork.drivers.vision.postprocessing.label_filter import NO_FILTER, select_detections
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class FakeVision(FrameVision):
    def __init__(
        self, name: ResourceName, attributes: FakeVisionAttributes, dependencies: Dependencies
    ) -> None:
        camera = find_default_camera(attributes.camera_name, dependencies)
        super().__init__(name, SystemClock(), camera=camera)
        things = attributes.detections
        self._labels = Labels({number: each.label for number, each in enumerate(things)})
        self._candidates = Candidates(
            np.array([each.box for each in things], np.float32).reshape(-1, 4),
            np.array([each.confidence for each in things], np.float32),
            np.arange(len(things), dtype=np.int64),
        )
        self._classifications = sorted(
            attributes.classifications, key=lambda each: -each.confidence
        )

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeVisionAttributes, dependencies: Dependencies
    ) -> FakeVision:
        return cls(name, attributes, dependencies)

    @property
    def is_detector(self) -> bool:
        return True

    @property
    def is_classifier(self) -> bool:
        return True

    def explain_unsupported(self, role: str) -> str:
        return f"it is a {role}"

    async def analyze_frame(self, frame: Frame) -> VisionResult:
        found = select_detections(
            self._candidates, self._labels, NO_FILTER, frame.width, frame.height
        )
        return VisionResult(
            found,
            [
                Classification(class_name=each.label, confidence=each.confidence)
                for each in self._classifications
            ],
        )
